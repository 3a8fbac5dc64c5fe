import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { RemoveDialog } from './RemoveDialog'

const onClose = vi.fn()
const onDone = vi.fn()
const some = ['a', 'b', 'c'].map((path) => ({ path, name: path }))
const gone = () => new Response(null, { status: 204 })
const show = () => renderView(<RemoveDialog place={{ folder: 'f' }} some={some} onClose={onClose} onDone={onDone} />)
// The button that was pressed is called "loading Delete" until its sign of that has faded out.
const press = async (name: string) => userEvent.click(await screen.findByRole('button', { name }))

beforeEach(() => {
  onClose.mockClear()
  onDone.mockClear()
})

describe('what is deleted', () => {
  it('goes one after the other, and the rest stays where that is cancelled', async () => {
    const asked: string[] = []
    vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
      asked.push(new URL(String(input), 'http://x').searchParams.get('path') ?? '')
      if (asked.length === 1) return Promise.resolve(gone())
      return new Promise((_, refuse) =>
        init?.signal?.addEventListener('abort', () => refuse(new DOMException('left', 'AbortError'))),
      ) // a large one
    })
    show()
    await press('Delete')
    await screen.findByText(/^Deleting b\./)
    await screen.findByText('1 of 3')
    expect(onClose).not.toHaveBeenCalled()
    await press('Cancel')
    await waitFor(() => expect(onClose).toHaveBeenCalledTimes(1))
    expect(onDone).toHaveBeenCalledTimes(1)
    expect(asked).toEqual(['a', 'b'])
  })

  it('says what could not be deleted, and does not mind what is gone', async () => {
    let tries = 0
    const sent = serve({
      'DELETE /api/v1/folders/f/files': () =>
        [
          gone(),
          refusal(403, 'file_use_forbidden', 'You may not delete b.'),
          gone(),
          refusal(404, 'file_use_not-found', 'There is no a.'),
          gone(),
          gone(),
        ][tries++] ?? gone(),
    })
    show()
    await press('Delete')
    await screen.findByText('You may not delete b.')
    expect([sent.length, onDone.mock.calls.length, onClose.mock.calls.length]).toEqual([3, 1, 0])
    await press('Delete')
    await waitFor(() => expect(onClose).toHaveBeenCalledTimes(1))
    expect(sent).toHaveLength(6)
  })
})
