import { screen } from '@testing-library/react'
import { expect, it } from 'vitest'
import { renderView } from '@/api/testing/render'
import { makeMachine } from '@/api/testing/session'
import { EMPTY_DRAFT } from './draft'
import { shownIssues } from './issueText'
import { ResourceFields } from './ResourceFields'

it('ends its sliders at what the machine has, whatever is entered beside them', () => {
  const draft = {
    ...EMPTY_DRAFT,
    cpu: 999,
    memory: { value: 999, unit: 't' as const },
    shm: { value: 1, unit: 'g' as const },
  }
  renderView(<ResourceFields draft={draft} issues={shownIssues([], new Set())} change={() => undefined} />, {
    known: { machines: [makeMachine()] },
  })
  const at = (name: string) => screen.getByRole('slider', { name }).getAttribute('aria-valuetext')
  expect([at('CPUs'), at('Amount of memory'), at('Amount of shared memory')]).toEqual(['8', '16 GiB', '1 GiB'])
})
