import { act, screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { forgetOpening, setOpening } from '@/api/openings'
import { renderView } from '@/api/testing/render'
import { now } from '@/lib/now'
import { OpeningCards } from './OpeningCards'

const opening = {
  session: 'aaaaaaaaaaaa',
  app: 'notebook',
  title: 'Notebook',
  since: now(),
  problem: null,
  blocked: null,
  giveUp: null,
}

afterEach(() => act(() => forgetOpening('aaaaaaaaaaaa', 'notebook')))

describe('the notification of an app that starts', () => {
  it('gives the start up, once', async () => {
    const giveUp = vi.fn(() => setOpening(opening))
    setOpening({ ...opening, giveUp })
    renderView(<OpeningCards />)
    const cancel = screen.getByRole('button', { name: 'Cancel starting Notebook' })
    await userEvent.click(cancel)
    expect(cancel).toBeDisabled()
    expect(giveUp).toHaveBeenCalledTimes(1)
  })
  it('has nothing to give up when it is over', () => {
    setOpening({ ...opening, since: null })
    renderView(<OpeningCards />)
    expect(screen.getByText('Ready')).toBeInTheDocument()
    expect(screen.queryByRole('button', { name: 'Cancel starting Notebook' })).not.toBeInTheDocument()
  })
})
