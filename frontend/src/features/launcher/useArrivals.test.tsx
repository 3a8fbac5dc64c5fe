import { screen, waitFor } from '@testing-library/react'
import { useState } from 'react'
import { afterEach, expect, it } from 'vitest'
import { applyOperation } from '@/api/book'
import { renderView, serve } from '@/api/testing/render'
import { makeAgent } from '@/api/testing/session'
import type { Operation } from '@/api/types.gen'
import { type Draft, EMPTY_DRAFT } from './draft'
import { useArrivals } from './useArrivals'

const copy = (id: string, folder: string): Operation => ({
  id,
  kind: 'file-copy',
  subject: 'data',
  agent: 'lab',
  folder,
  state: 'done',
  steps: [],
  startedAt: '2026-01-02T03:04:05Z',
  revision: 1,
})

function Probe() {
  const mount = { source: '', target: '', readOnly: false, folder: 'data', agent: 'local' }
  const [draft, setDraft] = useState<Draft>({ ...EMPTY_DRAFT, mounts: [mount] })
  useArrivals((next) => setDraft((old) => (typeof next === 'function' ? next(old) : { ...old, ...next })))
  return <output>{draft.mounts.map((m) => `${m.folder} ${m.agent}`).join()}</output>
}

afterEach(() => document.body.replaceChildren())

it('mounts a copy that was never shown as running, but none that had ended before', async () => {
  serve({})
  const { client } = renderView(<Probe />, { known: { agents: [makeAgent()], operations: [copy('old', 'earlier')] } })
  expect(screen.getByRole('status')).toHaveTextContent('data local')
  applyOperation(client, copy('new', 'data-2'))
  await waitFor(() => expect(screen.getByRole('status')).toHaveTextContent('data-2 lab'))
})
