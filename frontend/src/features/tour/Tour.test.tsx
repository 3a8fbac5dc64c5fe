import { screen } from '@testing-library/react'
import userEvent, { PointerEventsCheckLevel } from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { renderView } from '@/api/testing/render'
import { readStored, writeStored } from '@/lib/stored'
import { stepsOf } from './steps'
import { Tour } from './Tour'

const steps = stepsOf(undefined).slice(0, 2)

function page() {
  return (
    <>
      <div data-tour="panels" />
      <div data-tour="list" />
    </>
  )
}

describe('Tour', () => {
  beforeEach(() => {
    // jsdom lays nothing out: all that is there is seen.
    vi.spyOn(Element.prototype, 'getClientRects').mockReturnValue([
      new DOMRect(10, 10, 100, 20),
    ] as unknown as DOMRectList)
    writeStored('tour', 0)
  })
  afterEach(() => vi.restoreAllMocks())

  it('goes from control to control by the keyboard alone, and is left by Escape', async () => {
    const onVisit = vi.fn()
    const onClose = vi.fn()
    renderView(
      <>
        {page()}
        <Tour steps={steps} onVisit={onVisit} onClose={onClose} />
      </>,
    )
    expect(await screen.findByText('What you have and what is free')).toBeInTheDocument()
    expect(screen.getByText('1 of 2')).toBeInTheDocument()
    await expect.poll(() => document.activeElement?.textContent).toBe('Next')
    await userEvent.keyboard('{Enter}')
    expect(await screen.findByText('All sessions, live')).toBeInTheDocument()
    await expect.poll(() => document.activeElement?.textContent).toBe('Finish')
    await userEvent.keyboard('{ArrowLeft}')
    expect(await screen.findByText('1 of 2')).toBeInTheDocument()
    await userEvent.keyboard('{ArrowRight}')
    expect(await screen.findByText('2 of 2')).toBeInTheDocument()
    await userEvent.keyboard('{Escape}')
    expect(onClose).toHaveBeenCalledTimes(1)
    expect(onVisit).toHaveBeenCalledWith('/sessions')
    expect(readStored('tour', 0)).toBe(1)
  })

  it('goes on where it was left, and begins anew after its end', async () => {
    writeStored('tour', 1)
    const onClose = vi.fn()
    renderView(
      <>
        {page()}
        <Tour steps={steps} onVisit={vi.fn()} onClose={onClose} />
      </>,
    )
    expect(await screen.findByText('2 of 2')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Finish' }))
    expect(onClose).toHaveBeenCalled()
    expect(readStored('tour', 1)).toBe(0)
  })

  it('is left at any step by its cross and by a click into the dark, and not by one into its words', async () => {
    // jsdom does not know the attribute by which the dark takes clicks
    const user = userEvent.setup({ pointerEventsCheck: PointerEventsCheckLevel.Never })
    const ways = [
      () => user.click(screen.getByRole('button', { name: 'Exit the tour' })),
      () => user.click(document.querySelector('.ant-tour-mask svg > rect:last-child') as Element),
    ]
    for (const at of [0, 1]) {
      for (const leave of ways) {
        writeStored('tour', at)
        const onClose = vi.fn()
        const { unmount } = renderView(
          <>
            {page()}
            <Tour steps={steps} onVisit={vi.fn()} onClose={onClose} />
          </>,
        )
        await user.click(await screen.findByText(`${at + 1} of 2`))
        expect(onClose).not.toHaveBeenCalled()
        await leave()
        expect(onClose).toHaveBeenCalledTimes(1)
        expect(readStored('tour', 2)).toBe(at)
        unmount()
      }
    }
  })

  it('shows what only a demo has in a demo alone', () => {
    const names = (demo: Parameters<typeof stepsOf>[0]) => stepsOf(demo).map((s) => s.name)
    expect(names(undefined)).not.toContain('mark')
    expect(names({ lab: '' })).not.toContain('lid')
    expect(names({ lab: 'lab' })).toEqual(expect.arrayContaining(['lid', 'mark']))
  })
})
