import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { renderView } from '@/api/testing/render'
import { makeAgent } from '@/api/testing/session'
import { EMPTY_DRAFT } from './draft'
import { decodeDraft, encodeDraft } from './draftUrl'
import { shownIssues } from './issueText'
import { OwnerField } from './OwnerField'
import { ownerOf } from './owner'

const lab = makeAgent({ name: 'lab', local: false, address: 'ssh://lab', role: 'admin' })
const shared = makeAgent({ name: 'shared', local: false, address: 'slipway://shared', role: 'user' })
const agents = [makeAgent(), lab, shared]
const draft = { ...EMPTY_DRAFT, owner: 'ann' }

describe('the person for whom it is launched', () => {
  afterEach(() => document.body.replaceChildren())

  it('is asked for on a shared machine that one rules, and nowhere else', () => {
    expect([
      ownerOf({ ...draft, agent: 'lab' }, agents),
      ownerOf({ ...draft, agent: 'shared' }, agents),
      ownerOf({ ...draft, agent: 'local' }, agents),
      ownerOf(draft, agents),
    ]).toEqual(['ann', '', '', ''])
    renderView(
      <OwnerField draft={{ ...draft, agent: 'shared' }} issues={shownIssues([], new Set())} change={vi.fn()} />,
      { known: { agents } },
    )
    expect(screen.queryByRole('textbox', { name: 'Owner' })).toBeNull()
  })
  it('is typed, and kept in the address of the view', async () => {
    const change = vi.fn()
    renderView(
      <OwnerField draft={{ ...EMPTY_DRAFT, agent: 'lab' }} issues={shownIssues([], new Set())} change={change} />,
      { known: { agents } },
    )
    await userEvent.type(screen.getByRole('textbox', { name: 'Owner' }), 'b')
    expect(change).toHaveBeenLastCalledWith({ owner: 'b' })
    expect(decodeDraft(encodeDraft(draft))).toEqual(draft)
  })
})
