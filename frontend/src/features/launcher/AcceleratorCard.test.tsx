import { screen, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import i18next from 'i18next'
import { useState } from 'react'
import { describe, expect, it } from 'vitest'
import { renderView, serve } from '@/api/testing/render'
import { makeBoard, makeDevice, makeSession } from '@/api/testing/session'
import type { DeviceBoard, DeviceHolder, Preview, Session } from '@/api/types.gen'
import { AcceleratorCard } from './AcceleratorCard'
import { acceleratorText, NO_ACCELERATOR, parseAccelerator } from './accelerator'
import { type Draft, EMPTY_DRAFT, toSpec } from './draft'
import type { Issue } from './issues'
import { issueText, shownIssues } from './issueText'
import type { Judgement } from './useJudgement'
import { validate } from './validate'

const GIB = 1024 ** 3
const held: DeviceHolder = {
  session: 'a',
  name: 'train-a',
  owner: 'me',
  share: 500,
  promised: 39 * GIB,
  memory: 30 * GIB,
}
const python: DeviceHolder = { name: 'python', owner: 'ann', pid: 4312, share: 0, promised: 0, memory: 11 * GIB }
const mig = makeDevice({
  uuid: 'GPU-1',
  index: 1,
  model: 'H100',
  instances: [{ uuid: 'MIG-1', profile: '1g.10gb', memory: 10 * GIB, slices: 143 }],
})
const preview = (change: Partial<Preview>): Preview => ({
  spec: toSpec(EMPTY_DRAFT),
  agent: 'local',
  errors: [],
  warnings: [],
  command: '',
  folders: [],
  placements: [],
  forecasts: [],
  enforcement: '',
  ...change,
})

/** Shows the card with a draft that follows what is entered; text tells what it comes to. */
function show(
  asked: string,
  boards: DeviceBoard[] = [makeBoard()],
  told: Partial<Preview> = {},
  sessions: Session[] = [],
) {
  function Form() {
    const [draft, setDraft] = useState<Draft>({ ...EMPTY_DRAFT, image: 'a:1', accelerator: parseAccelerator(asked) })
    const judgement = {
      issues: [],
      errors: [],
      current: true,
      spec: '',
      preview: { data: preview(told) },
    } as unknown as Judgement
    return (
      <>
        <AcceleratorCard
          draft={draft}
          issues={shownIssues([], new Set())}
          judgement={judgement}
          change={(next) => setDraft((old) => (typeof next === 'function' ? next(old) : { ...old, ...next }))}
        />
        <output>{acceleratorText(draft.accelerator)}</output>
      </>
    )
  }
  renderView(<Form />, { known: { devices: boards, sessions } })
}

const t = i18next.getFixedT('en', 'launcher')
const wholeDevices = (devices: number): Draft => ({
  ...EMPTY_DRAFT,
  image: 'a:1',
  accelerator: { ...NO_ACCELERATOR, mode: 'devices', devices },
})
const text = () => screen.getByRole('status').textContent
const choose = (mode: string) =>
  userEvent.click(screen.getByRole('radio', { name: mode }).closest('label') as HTMLElement)
const row = (name: string) => within(screen.getByText(name).closest('li') as HTMLElement)

describe('the accelerator card', () => {
  it('offers nothing where there is no device, and says why', () => {
    show('', [makeBoard([], { text: 'The driver is not loaded.' })])
    expect(screen.getByText('The driver is not loaded.')).toBeInTheDocument()
    expect(screen.getByRole('radio', { name: 'Share' })).toBeDisabled()
    expect(screen.queryByRole('list', { name: 'Placement preview' })).not.toBeInTheDocument()
  })

  it('names the machines of devices where there are several', () => {
    show('0.5', [makeBoard([makeDevice()]), makeBoard([makeDevice({ uuid: 'GPU-2' })], { agent: 'lab' })])
    expect(row('lab · GPU 0').getByRole('img')).toHaveAccessibleName(/^lab · GPU 0/)
  })

  it('shows where a share would land, what others hold, and how it is kept', () => {
    show(
      '0.5',
      [
        makeBoard([
          makeDevice({ holders: [held, python], free: 500, memoryFree: 28 * GIB }),
          makeDevice({ uuid: 'GPU-2', index: 1 }),
        ]),
      ],
      {
        placements: [{ device: 'GPU-2', name: 'GPU 1', share: 500, memory: 39.5 * GIB, whole: false }],
        enforcement: 'watched',
      },
    )
    expect(row('GPU 1').getByText(/placed here: 0\.5/)).toHaveTextContent('placed here: 0.5 · 39.5 GiB')
    expect(row('GPU 0').getByText('0.5 free · 28 GiB')).toBeInTheDocument()
    expect(row('GPU 0').getByText('python, not a session, uses 11 GiB')).toBeInTheDocument()
    expect(row('GPU 0').getByRole('img')).toHaveAccessibleName('GPU 0, train-a: 0.5')
    expect(screen.getByText('Watched.')).toBeInTheDocument()
  })

  it('says what the last run used of the memory of a device, and takes what is enough', async () => {
    const last = makeSession({
      name: 'train',
      status: 'TERMINATED',
      result: 'success',
      terminatedAt: '2026-01-02T04:00:00Z',
      peakMemory: GIB,
      grants: { cpus: [0], memory: GIB, gpus: [{ device: 'GPU-0', share: 500, memory: 40 * GIB }] },
    })
    const row = { kind: 'session', session: last.id, device: 'GPU-0', vramPeak: 9 * GIB }
    serve({ 'GET /api/v1/usage': { rows: [{ ...row, session: 'other', vramPeak: 39 * GIB }, row] } })
    show('vram:32g', [makeBoard()], {}, [{ ...last, spec: { ...last.spec, image: 'a:1' } }])
    await screen.findByText(/^The last run, train, peaked at 9 GiB of 40 GiB GPU memory\./)
    await userEvent.click(screen.getByRole('button', { name: 'Use 11.5 GiB' }))
    expect(text()).toBe('vram:11776m') // 11.5 GiB
    expect(screen.queryByRole('button', { name: 'Use 11.5 GiB' })).not.toBeInTheDocument()
  })

  it('does not call a whole device limited by the driver', () => {
    show('1', [makeBoard()], {
      placements: [{ device: 'GPU-0', name: 'GPU 0', share: 1000, memory: 79 * GIB, whole: true }],
      enforcement: 'hard',
    })
    expect(screen.getByText('Whole device.')).toBeInTheDocument()
    expect(screen.queryByText('Hard limit.')).not.toBeInTheDocument()
  })

  it('says what would be given in place of what was asked, and asks for that on a click', async () => {
    show('0.25', [makeBoard()], {
      rounded: { asked: 250, given: 200, less: true, why: 'Shares are given in multiples of 0.1.', accept: '0.2' },
    })
    expect(screen.getByRole('alert')).toHaveTextContent('You asked for 0.25. 0.2 GPU would be allocated')
    await userEvent.click(screen.getByRole('button', { name: 'Use 0.2' }))
    expect(text()).toBe('0.2')
  })

  it('keeps what was entered in each way of asking', async () => {
    show('0.3')
    await choose('VRAM')
    expect(text()).toBe('vram:8g')
    await choose('Whole GPUs')
    expect(text()).toBe('1')
    await choose('Share')
    expect(text()).toBe('0.3')
    expect(screen.getByRole('radio', { name: 'MIG' })).toBeDisabled()
    expect(screen.getByText(/^MIG is unavailable: no GPU here/)).toBeInTheDocument()
  })

  it('offers the profiles of devices that are cut up', async () => {
    show('', [makeBoard([mig])])
    await choose('MIG')
    expect(text()).toBe('mig:1g.10gb')
    expect(screen.getByText('1g.10gb · 10 GiB · 1 on this machine')).toBeInTheDocument()
  })

  it('keeps half a device as it was entered, for the hint that says what to choose', async () => {
    show('2', [makeBoard([makeDevice(), makeDevice({ uuid: 'GPU-1', index: 1 })])])
    const field = screen.getByRole('spinbutton', { name: 'Whole GPUs' })
    await userEvent.clear(field)
    await userEvent.type(field, '2.5')
    await userEvent.tab()
    expect(text()).toBe('2.5')
    expect(issueText(validate(wholeDevices(2.5), 0)[0] as Issue, t)).toBe(
      '2.5 is not a whole number of GPUs. For part of a GPU, choose Share.',
    )
    expect(toSpec(wholeDevices(2.5))).not.toHaveProperty('accelerator')
  })

  it('offers no more devices than one machine has', () => {
    const lab = ['a', 'b', 'c'].map((uuid, index) => makeDevice({ uuid, index }))
    show('1', [makeBoard([makeDevice()]), makeBoard(lab, { agent: 'lab' })])
    const chips = within(screen.getByRole('group', { name: 'Usual numbers of GPUs' })).getAllByRole('button')
    expect(chips.map((chip) => chip.textContent)).toEqual(['1', '2'])
    expect(screen.getByText('3')).toBeInTheDocument()
  })

  it('lists devices in the order of their numbers', () => {
    show('1', [makeBoard([10, 2, 0].map((index) => makeDevice({ uuid: `u${index}`, index })))])
    const names = within(screen.getByRole('list', { name: 'Placement preview' })).getAllByText(/^GPU \d+$/)
    expect(names.map((one) => one.textContent)).toEqual(['GPU 0', 'GPU 2', 'GPU 10'])
  })
})
