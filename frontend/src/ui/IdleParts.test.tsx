import { render, screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { IdleBadge, IdlePopover, type IdleShown } from './IdleParts'

const minute = 60_000
const inTime = (ms: number) => new Date(Date.now() + ms).toISOString()
const check = (change: Partial<IdleShown>): IdleShown => ({
  checker: 'network',
  state: 'idle',
  message: 'No traffic for 20 min.',
  metrics: [],
  checkedAt: inTime(0),
  ...change,
})

const tone = (checks: IdleShown[], keepUntil?: string) => {
  const { unmount } = render(<IdleBadge checks={checks} keepUntil={keepUntil} />)
  const found = document.querySelector('[data-tone]')?.getAttribute('data-tone')
  unmount()
  return found
}

describe('the idle badge', () => {
  it('has the colour of the check that would end the session first', () => {
    expect(
      tone([
        check({ expiresAt: inTime(30 * minute) }),
        check({ checker: 'lifetime', expiresAt: inTime(900 * minute) }),
      ]),
    ).toBe('bad')
    expect(tone([check({ expiresAt: inTime(120 * minute) })])).toBe('warn')
    expect(tone([check({ expiresAt: inTime(600 * minute) })])).toBe('good')
    expect(tone([check({ expiresAt: inTime(30 * minute) })], inTime(60 * minute))).toBe('kept')
  })
  it('counts nothing down that is unknown, not judged yet or in use', () => {
    expect(tone(['unknown', 'grace', 'active'].map((state) => check({ state, expiresAt: inTime(minute) })))).toBe(
      'none',
    )
  })
})

describe('the idle popover', () => {
  const open = async (checks: IdleShown[], more: { unjudged?: boolean; onKeep?: (hours: number) => void } = {}) => {
    render(
      <IdlePopover checks={checks} keepUntil={undefined} {...more}>
        <button type="button">look</button>
      </IdlePopover>,
    )
    await userEvent.click(screen.getByRole('button', { name: 'look' }))
  }
  it('tells each check in numbers with its threshold, and what the colours mean', async () => {
    const keep = vi.fn()
    await open(
      [
        check({
          checker: 'utilization',
          expiresAt: inTime(10 * minute),
          metrics: [
            { name: 'gpu', average: 1.5, threshold: 5 },
            { name: 'cpu', average: 7, threshold: 5 },
          ],
        }),
      ],
      { onKeep: keep },
    )
    expect(await screen.findByText('1.5 % of at least 5 %')).toHaveAttribute('class', expect.stringContaining('bad'))
    expect(screen.getByText('What the colours mean')).toBeInTheDocument()
    expect(screen.getByText('Below its threshold')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Keep for 4 h' }))
    expect(keep).toHaveBeenCalledWith(4)
  })
  it('says of the unknown that it keeps running', async () => {
    await open([check({ state: 'unknown', message: 'Only 40 % was measured.' })])
    expect(
      await screen.findByText(/Only 40 % was measured\. If a value is unknown, the session keeps running\./),
    ).toBeInTheDocument()
  })
  it('says when a session that is not judged yet is judged first', async () => {
    await open([
      check({
        checker: 'utilization',
        state: 'grace',
        message: 'Not judged for the first 1 h 30 min.',
        judgedFrom: inTime(65 * minute + 30_000),
      }),
    ])
    expect(await screen.findByText('checked in 1h 05m')).toHaveAttribute('title', expect.stringMatching(/\d/))
  })
  it('tells no check from one that has not come yet', async () => {
    await open([], { unjudged: true })
    expect(await screen.findByText(/The first check runs within 15 seconds/)).toBeInTheDocument()
    expect(screen.queryByText('What the colours mean')).not.toBeInTheDocument()
  })
})
