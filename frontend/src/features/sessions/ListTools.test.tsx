import { screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeAgent, makeMachine, makeSession } from '@/api/testing/session'
import { SessionsPage } from './SessionsPage'

const known = {
  sessions: [
    makeSession({ id: 'a', name: 'alpha', createdAt: '2026-01-01T00:00:00Z' }),
    makeSession({ id: 'b', name: 'beta', agent: 'lab', owner: 'ada', createdAt: '2026-01-02T00:00:00Z' }),
    makeSession({ id: 'c', name: 'gamma', agent: 'lab', status: 'PENDING', createdAt: '2026-01-03T00:00:00Z' }),
  ],
  machines: [makeMachine()],
  agents: [makeAgent(), makeAgent({ name: 'lab', owner: 'me', local: false })],
}
const show = (at = '/') => renderView(<SessionsPage openId={undefined} />, { known, at })
const filter = () => screen.getByRole('combobox', { name: 'Filter sessions' })
const names = () => screen.queryAllByRole('link', { name: /^(alpha|beta|gamma)$/ }).map((link) => link.textContent)

beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600)
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(1000)
  serve({})
})

describe('the tools of the list', () => {
  it('keep the sort when a filter is typed after it', async () => {
    const { where } = show()
    await userEvent.click(screen.getByRole('columnheader', { name: 'Name' }))
    expect(names()).toEqual(['alpha', 'beta', 'gamma'])
    await userEvent.type(filter(), 'a')
    await waitFor(() => expect(where()).toBe('/?sort=name&q=a'))
    expect(names()).toEqual(['alpha', 'beta', 'gamma'])
  })
  it('say that a filter names a status that there is not, and offer the nearest', async () => {
    show('/?q=status%3Aruning')
    expect(screen.getByText('There is no status “runing”.')).toBeInTheDocument()
    await userEvent.click(screen.getByRole('button', { name: 'Use status:running' }))
    expect(names()).toEqual(['beta', 'alpha'])
    expect(screen.queryByText(/There is no/)).not.toBeInTheDocument()
  })
  it('say so where all that is not it is shown, and of a machine', () => {
    show('/?q=-agent%3Alabb')
    expect(screen.getByText('No session has agent “labb”.')).toBeInTheDocument()
    expect(names()).toHaveLength(3)
  })
  it('find by views, of which one can save and remove own ones', async () => {
    const first = show()
    const open = () => userEvent.click(screen.getByRole('button', { name: 'Saved views' }))
    await open()
    await userEvent.click(await screen.findByRole('button', { name: 'Mine' }))
    expect(names()).toEqual(['gamma', 'alpha'])
    await open()
    await userEvent.click(await screen.findByRole('button', { name: 'Waiting' }))
    expect(names()).toEqual(['gamma'])
    await userEvent.clear(filter())
    await userEvent.type(filter(), 'ada')
    await waitFor(() => expect(names()).toEqual(['beta']))
    await open()
    await userEvent.type(screen.getByRole('textbox', { name: 'Name of this view' }), 'of Ada{Enter}')
    first.unmount()
    show()
    await open()
    await userEvent.click(await screen.findByRole('button', { name: 'of Ada' }))
    expect(names()).toEqual(['beta'])
    await open()
    await userEvent.click(await screen.findByRole('button', { name: 'Remove the view of Ada' }))
    expect(screen.queryByRole('button', { name: 'of Ada' })).not.toBeInTheDocument()
  })
  it('make the rows low, and remember it', async () => {
    const first = show()
    await userEvent.click(screen.getByRole('button', { name: 'Rows and grouping' }))
    await userEvent.click(await screen.findByText('Dense'))
    expect(document.querySelector('.ant-table-small')).toBeInTheDocument()
    first.unmount()
    show()
    expect(document.querySelector('.ant-table-small')).toBeInTheDocument()
  })
  it('group by machine, each under its name with how many there are', async () => {
    const { where } = show()
    await userEvent.click(screen.getByRole('button', { name: 'Rows and grouping' }))
    await userEvent.click(within(await screen.findByRole('radiogroup', { name: 'Group by' })).getByText('Machine'))
    expect(where()).toBe('/?group=agent')
    expect(names()).toEqual(['gamma', 'beta', 'alpha'])
    expect(screen.getByText('2 sessions')).toBeInTheDocument()
    // A head is nothing to select, and another person's session is selected by itself.
    await userEvent.click(screen.getByRole('checkbox', { name: 'Select all' }))
    expect(screen.getByText('2 sessions selected')).toBeInTheDocument()
  })
  it('keep name and actions in view', () => {
    show()
    expect(screen.getByRole('columnheader', { name: 'Name' })).toHaveClass('ant-table-cell-fix')
    expect(screen.getByRole('columnheader', { name: 'Actions' })).toHaveClass('ant-table-cell-fix')
  })
})
