import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { expect, it, vi } from 'vitest'
import { renderView } from '@/api/testing/render'
import { CopyDiagnostics } from './CopyDiagnostics'

it('asks no more for what is known of a machine when one has left', async () => {
  const signals: (AbortSignal | null | undefined)[] = []
  vi.spyOn(globalThis, 'fetch').mockImplementation((_, init) => {
    signals.push(init?.signal)
    return new Promise((_, refuse) =>
      init?.signal?.addEventListener('abort', () => refuse(new DOMException('left', 'AbortError'))),
    )
  })
  const { unmount } = renderView(<CopyDiagnostics />)
  await userEvent.setup().click(screen.getByRole('button')) // with a clipboard
  await waitFor(() => expect(signals).toHaveLength(1))
  expect(signals[0]?.aborted).toBe(false)
  unmount()
  expect(signals[0]?.aborted).toBe(true)
})
