import { render, screen } from '@testing-library/react'
import { afterEach, describe, expect, it } from 'vitest'
import { changeLanguage } from '@/i18n/i18n'
import { estimateText, type Phrase, type Waits } from '@/lib/phrases'
import { now } from '@/lib/now'
import { formatMoment } from '@/lib/time'
import { WaitReason } from './WaitReason'

afterEach(() => changeLanguage('en'))

/** Noon of a day from today, in the time zone of the reader. */
function noon(days: number): Date {
  const at = new Date(now())
  at.setHours(12, 40, 0, 0)
  at.setDate(at.getDate() + days)
  return at
}
const moment = (at: Date): Phrase => ({ hole: 'at', say: 'moment', text: at.toISOString() })
const about = (days: number): Phrase => ({
  say: 'estimateAbout',
  count: 6,
  with: [moment(noon(days)), { hole: 'margin', text: '13 min' }],
})
const wait: Waits = {
  message: 'As it came.',
  said: [
    {
      say: 'fewDevices',
      with: [
        { hole: 'what', say: 'gpuOf', count: 8, with: [{ hole: 'amount', text: '2' }] },
        { hole: 'machine', text: 'gpu-1' },
      ],
    },
    {
      say: 'freesAbout',
      with: [{ hole: 'name', say: 'anothersFirst' }, { hole: 'amount', say: 'gpus', count: 4 }, moment(noon(0))],
    },
  ],
  details: [{ say: 'deviceHolders', with: [{ hole: 'devices', text: 'GPU 0: train-a has it' }] }],
  estimate: about(0),
}

describe('WaitReason', () => {
  it('names the need, the machine and who frees enough, with the details folded', () => {
    render(<WaitReason wait={wait} machine="lab" />)
    const lead = "Needs 2 of 8 GPUs on lab. Another person's session frees 4 GPUs at about 12:40."
    expect(screen.getByText(lead)).toBeInTheDocument()
    expect(screen.getByText('Start: about 12:40 (± 13 min, from 6 earlier runs)')).toBeInTheDocument()
    expect(screen.getByText('GPU 0: train-a has it.')).not.toBeVisible()
    screen.getByText('Who has what').click()
    expect(screen.getByText('GPU 0: train-a has it.')).toBeVisible()
  })
  it('says it in the language of the page', async () => {
    await changeLanguage('ko')
    render(<WaitReason wait={wait} machine="lab" />)
    expect(
      screen.getByText('lab에서 GPU 8개 중 2개 필요. 12:40쯤 다른 사람의 세션에서 GPU 4개 반환.'),
    ).toBeInTheDocument()
    expect(screen.getByText('시작: 12:40쯤 (± 13 min, 이전 실행 6회 기준)')).toBeInTheDocument()
  })
  it('says all as it came where it has no words, once', () => {
    render(<WaitReason wait={{ ...wait, said: [{ say: 'moon' }] }} machine="lab" />)
    expect(screen.getByText('As it came.')).toBeInTheDocument()
    expect(screen.queryByText('Who has what')).not.toBeInTheDocument()
  })
})

describe('estimateText', () => {
  const tomorrow = formatMoment(noon(1).getTime())
  it.each<[string, Phrase | undefined, string]>([
    ['another day', about(1), `about ${tomorrow} (± 13 min, from 6 earlier runs)`],
    ['a limit', { say: 'estimateLatest', with: [moment(noon(0))] }, 'at the latest 12:40'],
    ['a start time', { say: 'estimateEarliest', with: [moment(noon(1))] }, `${tomorrow} or later`],
    ['nothing', undefined, 'unknown'],
    ['what it has no words for', { say: 'moon' }, 'unknown'],
  ])('words %s', (_name, estimate, text) => {
    expect(tomorrow).toMatch(/^\d{4}-\d\d-\d\d 12:40$/)
    expect(estimateText({ ...wait, estimate })).toBe(text)
  })
})
