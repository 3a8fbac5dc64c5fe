import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { renderView } from '@/api/testing/render'
import { makeAgent, makeMachine } from '@/api/testing/session'
import { EMPTY_DRAFT } from './draft'
import { shownIssues } from './issueText'
import { SlurmCard } from './SlurmCard'

function show(timeRequired: boolean) {
  const change = vi.fn()
  const slurm = {
    version: '24.05.3',
    calls: 0,
    partitions: [{ name: 'gpu', up: true, default: true, nodes: 1, cpus: 8, memory: 2 ** 35 }],
    accounts: [],
    qos: [],
    timeRequired,
  }
  renderView(<SlurmCard draft={EMPTY_DRAFT} issues={shownIssues([], new Set())} change={change} />, {
    known: { agents: [makeAgent()], machines: [makeMachine({ slurm })] },
  })
  return change
}

describe('the time limit of a session on a cluster', () => {
  afterEach(() => document.body.replaceChildren())

  it('may be left to the site', () => {
    show(false)
    expect(screen.queryByRole('spinbutton', { name: 'Time limit' })).toBeNull()
    expect(screen.getByRole('checkbox', { name: 'End after' })).not.toBeChecked()
  })

  it('is marked where the site requires one', async () => {
    const change = show(true)
    expect(screen.queryByRole('checkbox', { name: 'End after' })).toBeNull()
    expect(screen.getByText('required by this site')).toBeVisible()
    await userEvent.type(screen.getByRole('spinbutton', { name: 'Time limit' }), '2')
    expect(change.mock.lastCall?.[0](EMPTY_DRAFT)).toMatchObject({ slurm: { time: '2h' } })
  })
})
