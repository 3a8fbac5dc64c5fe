import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { useState } from 'react'
import { describe, expect, it } from 'vitest'
import { keys } from '@/api/keys'
import { refusal, renderView, serve } from '@/api/testing/render'
import type { Image, Preset } from '@/api/types.gen'
import { type Draft, EMPTY_DRAFT } from './draft'
import { shownIssues } from './issueText'
import { PresetField } from './PresetField'

const GIB = 1024 ** 3
const small: Preset = {
  id: 'small',
  name: 'Small',
  resources: { cpu: 1, memory: 2 * GIB },
  builtin: true,
}
const own: Preset = {
  id: 'p1',
  name: 'half a card',
  resources: { cpu: 4, memory: 8 * GIB },
  builtin: false,
  accelerator: { shares: 500 },
}
const image: Image = {
  id: 'sha256:a',
  refs: ['python:3.12'],
  size: 1,
  createdAt: '2026-01-01T00:00:00Z',
  arch: 'amd64',
  labels: { 'slipway.min.cpu': '2', 'slipway.min.memory': '512m' },
  usedBy: [],
  agent: 'local',
}

function show(start: Partial<Draft> = {}, images: Image[] = []) {
  function Form() {
    const [draft, setDraft] = useState<Draft>({ ...EMPTY_DRAFT, image: 'python:3.12', ...start })
    return (
      <>
        <PresetField
          draft={draft}
          issues={shownIssues([], new Set())}
          change={(next) => setDraft((old) => (typeof next === 'function' ? next(old) : { ...old, ...next }))}
        />
        <output>{`${draft.cpu} ${draft.memory.value}${draft.memory.unit} ${draft.accelerator.mode}`}</output>
      </>
    )
  }
  const sent = serve({
    'GET /api/v1/presets': [small, own],
    'GET /api/v1/images': images,
    'GET /api/v1/environments': [],
    'POST /api/v1/presets': own,
    'PATCH /api/v1/presets/p1': () =>
      refusal(409, 'settings_update_conflict', 'There is a preset of that name.', 'Choose another.'),
    'DELETE /api/v1/presets/p1': undefined,
  })
  const view = renderView(<Form />, { known: { presets: [small, own] } })
  view.client.setQueryData(keys.images, images)
  return sent
}

async function pick(name: string) {
  await userEvent.click(screen.getByRole('combobox', { name: 'Preset' }))
  await userEvent.click((await screen.findAllByText(name)).at(-1) as HTMLElement)
}

describe('presets', () => {
  it("fill in their amounts, and any other number is one's own", async () => {
    show({ cpu: 3 })
    expect(screen.getByText('Custom')).toBeInTheDocument()
    await pick('half a card')
    expect(screen.getByRole('status')).toHaveTextContent('4 8g shares')
    expect(screen.queryByRole('button', { name: 'Save as a preset' })).not.toBeInTheDocument()
  })

  it('are saved under a name with what is asked for', async () => {
    const sent = show({ cpu: 3 })
    await userEvent.click(screen.getByRole('button', { name: 'Save as a preset' }))
    expect(screen.getByRole('button', { name: 'Save' })).toBeDisabled()
    await userEvent.type(screen.getByRole('textbox', { name: 'Preset name' }), ' trio {Enter}')
    await waitFor(() =>
      expect(sent.find((s) => s.method === 'POST')?.body).toEqual({
        name: 'trio',
        resources: { cpu: 3, memory: 2 * GIB },
      }),
    )
  })

  it('are not saved where the form is left', async () => {
    const sent = show({ cpu: 3 })
    await userEvent.click(screen.getByRole('button', { name: 'Save as a preset' }))
    await userEvent.type(screen.getByRole('textbox', { name: 'Preset name' }), 'trio{Escape}')
    await waitFor(() => expect(screen.queryByRole('textbox', { name: 'Preset name' })).not.toBeInTheDocument())
    expect(sent.filter((s) => s.method !== 'GET')).toEqual([])
  })

  it('keep their name where another is refused, and say why', async () => {
    const sent = show()
    await userEvent.click(screen.getByRole('button', { name: 'Rename or delete presets' }))
    const name = screen.getByRole('textbox', { name: 'Name of preset half a card' })
    await userEvent.clear(name)
    await userEvent.type(name, 'Small{Enter}')
    expect(await screen.findByText('There is a preset of that name. Choose another.')).toBeInTheDocument()
    expect(sent.find((s) => s.method === 'PATCH')?.body).toEqual({ name: 'Small' })
    await waitFor(() => expect(name).toHaveValue('half a card'))
  })

  it('keep their name where renaming is given up', async () => {
    const sent = show()
    await userEvent.click(screen.getByRole('button', { name: 'Rename or delete presets' }))
    const name = screen.getByRole('textbox', { name: 'Name of preset half a card' })
    await userEvent.type(name, ' more{Escape}')
    expect(name).toHaveValue('half a card')
    await userEvent.tab()
    expect(sent.filter((s) => s.method !== 'GET')).toEqual([])
  })

  it('include the minimum of an image that tells one', async () => {
    show({}, [image])
    await pick('Minimum of the image')
    expect(screen.getByRole('status')).toHaveTextContent('2 512m none')
  })
})
