import { fireEvent, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import type { Recipe } from '@/api/types.gen'
import { CompareModal } from './CompareModal'
import { OpenRecipe } from './OpenRecipe'
import { RecipeDrop } from './RecipeDrop'
import { RecipeModal } from './RecipeModal'

const recipe: Recipe = {
  name: 'train',
  fileName: 'train.slipway.yaml',
  spec: { image: 'python:3.12', resources: {} },
  yaml: 'image: python:3.12\n',
  command: 'slipway run --image python:3.12',
  docker: 'docker run python:3.12',
  pinned: false,
  secrets: ['HF_TOKEN'],
  lacks: ['There is no queue.'],
  passed: '2026-01-02T03:04:05Z',
}
// jsdom's files cannot tell their text.
const file = (name: string, text: string) =>
  Object.assign(new File([text], name, { type: 'application/yaml' }), { text: () => Promise.resolve(text) })

describe('RecipeModal', () => {
  it('shows the three forms, copies the one shown and says what is left out', async () => {
    serve({ 'GET /api/v1/sessions/a/recipe': recipe })
    const user = userEvent.setup()
    renderView(<RecipeModal source={{ kind: 'session', id: 'a' }} onClose={vi.fn()} onCompare={vi.fn()} />)
    expect(await screen.findByText('Recipe of train')).toBeInTheDocument()
    expect(screen.getByText(/image: python:3.12/)).toBeInTheDocument()
    expect(screen.getByText(/HF_TOKEN is not saved/)).toBeInTheDocument()
    expect(screen.getByText(/^The start time .*2026.* is omitted/)).toBeInTheDocument()
    expect(screen.getByText(/not pinned by digest/)).toBeInTheDocument()
    expect(screen.queryByText('There is no queue.')).not.toBeInTheDocument()
    await user.click(screen.getByText('docker run'))
    expect(screen.getByText('There is no queue.')).toBeInTheDocument()
    await user.click(screen.getByRole('button', { name: 'Copy docker run' }))
    expect(await navigator.clipboard.readText()).toBe('docker run python:3.12')
  })
  it('says why there is none, and tries again', async () => {
    let asked = 0
    serve({
      'GET /api/v1/recents/r/recipe': () =>
        asked++ === 0
          ? refusal(404, 'recipe_read_not-found', 'The launch history has no such entry.')
          : new Response(JSON.stringify(recipe)),
    })
    renderView(<RecipeModal source={{ kind: 'recent', id: 'r' }} onClose={vi.fn()} onCompare={vi.fn()} />)
    await userEvent.click(await screen.findByRole('button', { name: 'Try again' }))
    expect(await screen.findByText('Recipe of train')).toBeInTheDocument()
  })
})

describe('opening a recipe', () => {
  it('reads a file that is chosen', async () => {
    const sent = serve({ 'POST /api/v1/recipes/read': { image: 'a:1', resources: {} } })
    const onRead = vi.fn()
    renderView(<OpenRecipe onRead={onRead} />)
    await userEvent.upload(screen.getByLabelText('Recipe file'), file('r.yaml', 'image: a:1'))
    await waitFor(() => expect(onRead).toHaveBeenCalledWith({ name: 'r.yaml', spec: { image: 'a:1', resources: {} } }))
    expect(sent[0]?.body).toEqual({ yaml: 'image: a:1' })
  })
  it('reads a file that is dropped, and no other', async () => {
    const sent = serve({ 'POST /api/v1/recipes/read': { image: 'a:1', resources: {} } })
    const onRead = vi.fn()
    renderView(
      <RecipeDrop onRead={onRead}>
        <p>page</p>
      </RecipeDrop>,
    )
    const page = screen.getByText('page')
    const carry = (...files: File[]) => ({ dataTransfer: { types: ['Files'], files, items: [] } })
    fireEvent.dragEnter(page, carry())
    expect(screen.getByText('Drop a recipe')).toBeInTheDocument()
    fireEvent.dragLeave(page, carry())
    expect(screen.queryByText('Drop a recipe')).not.toBeInTheDocument()
    fireEvent.drop(page, carry(file('photo.png', '')))
    expect(await screen.findByText(/must end in \.yaml/)).toBeInTheDocument()
    expect(sent).toHaveLength(0)
    fireEvent.drop(page, carry(file('r.yml', 'image: a:1')))
    await waitFor(() => expect(onRead).toHaveBeenCalledTimes(1))
  })
  it('says in which line the fault is and launches nothing', async () => {
    serve({
      'POST /api/v1/recipes/read': () => refusal(422, 'recipe_parse_invalid', 'Line 2: "imagge" is not a field here.'),
    })
    const onRead = vi.fn()
    renderView(<OpenRecipe onRead={onRead} />)
    await userEvent.upload(screen.getByLabelText('Recipe file'), file('r.yaml', 'x'))
    expect(await screen.findByText(/Line 2: "imagge"/)).toBeInTheDocument()
    expect(onRead).not.toHaveBeenCalled()
  })
})

describe('CompareModal', () => {
  it('compares a launch with a file, the differences first and all on demand', async () => {
    serve({
      'GET /api/v1/recents/r/recipe': recipe,
      'POST /api/v1/recipes/read': { image: 'python:3.13', resources: {} },
      'POST /api/v1/recipes/compare': [
        { field: 'image', left: 'python:3.12', right: 'python:3.13', same: false },
        { field: 'resources.cpu', left: '2', right: '2', same: true },
      ],
    })
    renderView(<CompareModal first={{ kind: 'recent', id: 'r' }} onClose={vi.fn()} />, {
      known: { recents: [], sessions: [] },
    })
    expect(await screen.findByText('Choose two recipes.')).toBeInTheDocument()
    await userEvent.upload(screen.getAllByLabelText('Recipe file')[1]!, file('other.yaml', 'image: python:3.13'))
    const table = await screen.findByRole('table')
    expect(within(table).getByText('python:3.13')).toBeInTheDocument()
    expect(within(table).queryByText('resources.cpu')).not.toBeInTheDocument()
    expect(screen.getByText('1 field differs')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('switch'))
    expect(within(screen.getByRole('table')).getByText('resources.cpu')).toBeInTheDocument()
  })
})
