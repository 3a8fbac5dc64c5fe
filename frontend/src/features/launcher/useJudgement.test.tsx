import { act, screen } from '@testing-library/react'
import { useState } from 'react'
import { afterEach, describe, expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import type { Spec } from '@/api/types.gen'
import { type Draft, EMPTY_DRAFT } from './draft'
import { shownIssues } from './issueText'
import { Outlook } from './Outlook'
import { useJudgement } from './useJudgement'

let change: (draft: Partial<Draft>) => void

function Probe() {
  const [draft, setDraft] = useState<Draft>({ ...EMPTY_DRAFT, image: 'a:1', name: 'ab' })
  change = (next) => act(() => setDraft((old) => ({ ...old, ...next })))
  const judgement = useJudgement(draft, '', null)
  return (
    <>
      <Outlook
        judgement={judgement}
        shown={shownIssues(judgement.issues, new Set())}
        image={{ installed: true, size: 0 }}
        count={draft.count ?? 1}
      />
      <output>
        {judgement.errors.map(({ field, message, key }) => `${field}: ${message ?? key}`).join('; ') || 'right'}
      </output>
    </>
  )
}

const told = (text: string) =>
  expect.poll(() => screen.getByRole('status', { hidden: true }).textContent, { timeout: 3000 }).toBe(text)

/** A preview that minds names shorter than four characters. */
const preview = (body: unknown) => {
  const spec = body as Spec
  const errors = (spec.name ?? '').length < 4 ? [{ field: 'name', code: 'x', message: 'Too short.' }] : []
  const rest = { warnings: [], placements: [], forecasts, command: '', folders: [] }
  return Response.json({ spec, agent: 'local', errors, ...rest })
}

const starts = (device: string) => ({ agent: 'local', pulls: false, placements: [{ name: device, device }] })
const waits = { agent: 'lab', pulls: false, placements: [], wait: { code: 'w', message: 'Needs 16 GiB.' } }
let forecasts: unknown[] = [{ ...starts('GPU 0'), placements: [] }]

describe('a draft', () => {
  afterEach(() => document.body.replaceChildren())

  it('is judged by the server, and keeps what was found until the next answer', async () => {
    serve({ 'POST /api/v1/preview': preview })
    renderView(<Probe />)
    await told('name: Too short.')
    change({ name: 'abc' })
    expect(screen.getByText('name: Too short.')).toBeInTheDocument()
    change({ name: 'abcd' })
    await told('right')
    expect(screen.getByText('Starts at once')).toBeInTheDocument()
  })

  it('is forecast for each of several sessions, in groups', async () => {
    forecasts = [starts('GPU 1'), waits, starts('GPU 0'), waits, waits]
    serve({ 'POST /api/v1/preview': preview })
    renderView(<Probe />)
    change({ name: 'abcd', count: 6 })
    expect(await screen.findByText('2 start at once', {}, { timeout: 3000 })).toBeInTheDocument()
    expect(screen.getByText('On local, GPU 1, GPU 0.')).toBeInTheDocument()
    expect(screen.getByText('3 will wait')).toBeInTheDocument()
    expect(screen.getByText('On lab.')).toBeInTheDocument()
    expect(screen.getByText('Needs 16 GiB.')).toBeInTheDocument()
    expect(screen.getByText('Start: unknown')).toBeInTheDocument()
    expect(screen.getByText('Outcome of 1 more unavailable')).toBeInTheDocument()
  })

  it('is not held back where the server cannot be asked, and says that nothing was checked', async () => {
    serve({ 'POST /api/v1/preview': () => new Response('', { status: 502 }) })
    renderView(<Probe />)
    await told('right')
    expect(await screen.findByText(/You can still launch/, {}, { timeout: 3000 })).toBeInTheDocument()
    change({ cpu: 0 })
    await told('resources.cpu: cpuWhole')
  })
})
