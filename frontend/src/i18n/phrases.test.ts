import { afterEach, describe, expect, it } from 'vitest'
import { hintText, messageText, type Phrase, whyText } from '@/lib/phrases'
import { changeLanguage } from './i18n'

afterEach(() => changeLanguage('en'))

const holds = (name: Phrase, amount: string): Phrase => ({
  say: 'holds',
  with: [
    { ...name, hole: 'name' },
    { hole: 'amount', text: amount },
  ],
})
const lacks: Phrase = {
  say: 'fewCpus',
  count: 1,
  with: [
    { hole: 'what', say: 'cpuOf', count: 8, with: [{ hole: 'amount', text: '4' }] },
    { hole: 'machine', text: 'gpu-1' },
  ],
}
const holders: Phrase = {
  say: 'cpuHolders',
  with: [{ hole: 'holders', text: ', ', with: [holds({ text: 'train-a' }, '6'), holds({ say: 'anothers' }, '1')] }],
}

describe('hintText', () => {
  const failed = {
    message: 'As it came.',
    said: [{ say: 'taskFailed', with: [{ hole: 'code', text: '3' }] }],
    hint: 'As it came.',
    advice: [{ say: 'readLog' }],
  }
  it('says what to do as the message is said', async () => {
    expect([messageText(failed), hintText(failed)]).toEqual([
      'The startup command ended with exit code 3.',
      "Read the session's log.",
    ])
    await changeLanguage('ko')
    expect([messageText(failed), hintText(failed)]).toEqual([
      '시작 명령이 종료 코드 3으로 끝났습니다.',
      '세션의 로그를 확인하세요.',
    ])
  })
  it('says nothing where nothing is advised, and English where it came in English alone', async () => {
    await changeLanguage('ko')
    expect(hintText({ message: 'It ended.' })).toBe('')
    expect(hintText({ message: 'It ended.', hint: 'Read on.' })).toBe('Read on.')
  })
})

describe('whyText', () => {
  const why = 'As it came.'
  const said: Phrase[] = [
    { say: 'replicasHealthy', count: 2, with: [{ hole: 'healthy', text: '1' }] },
    {
      say: 'failuresInARow',
      count: 3,
      with: [{ hole: 'last', say: 'serverEnded', with: [{ hole: 'code', text: '1' }] }],
    },
    { say: 'nextAttempt', with: [{ hole: 'span', text: '4 s' }] },
  ]
  it('says the state of a service in the language of the page', async () => {
    await changeLanguage('ko')
    expect(whyText({ why, said })).toBe(
      '복제본 2개 중 1개가 정상입니다. 연속 3번 실패, 마지막 원인: 서버가 종료 코드 1로 끝났습니다. 그로부터 4 s 뒤에 다시 시도합니다.',
    )
    expect(whyText({ why })).toBe(why)
    expect(whyText({})).toBe('')
  })
})

describe('messageText', () => {
  it('says in the language of the page what an agent says in phrases', async () => {
    expect(messageText({ message: 'As it came.', said: [lacks, holders] })).toBe(
      "Needs 4 of 8 CPUs on gpu-1, 1 is free. CPUs: train-a has 6, another person's session has 1.",
    )
    await changeLanguage('ko')
    expect(messageText({ message: 'As it came.', said: [lacks, holders] })).toBe(
      'gpu-1에서 CPU 8개 중 4개 필요, 1개 여유. CPU: train-a에 6 할당, 다른 사람의 세션에 1 할당.',
    )
  })
  it.each<[string, Phrase, string]>([
    ['one', { say: 'wholeDevice', count: 1 }, '1 whole device'],
    ['many', { say: 'wholeDevice', count: 2 }, '2 whole devices'],
    [
      'none',
      {
        say: 'fewCpus',
        with: [
          { hole: 'what', say: 'cpuOf', count: 8, with: [{ hole: 'amount', text: '1' }] },
          { hole: 'machine', text: 'lab' },
        ],
      },
      'Needs 1 of 8 CPUs on lab, 0 are free.',
    ],
    [
      'an empty hole',
      {
        say: 'limit',
        count: 3,
        with: [
          { hole: 'limit', say: 'cpu', count: 4 },
          { hole: 'used', text: '3' },
          { hole: 'kept' },
          { hole: 'asked', text: '2' },
        ],
      },
      'Your limit here is 4 CPUs: 3 are in use, this session asks for 2.',
    ],
    ['what stands as it is', { text: 'GPU 0' }, 'GPU 0'],
  ])('says %s', (_name, phrase, text) => expect(messageText({ message: '', said: [phrase] })).toBe(text))
  it('says it in English where an agent says nothing in phrases, or what the page does not know', async () => {
    await changeLanguage('ko')
    expect(messageText({ message: 'Needs 4 CPUs.' })).toBe('Needs 4 CPUs.')
    expect(messageText({ message: 'Needs 4 CPUs.', said: [] })).toBe('Needs 4 CPUs.')
    expect(
      messageText({
        message: 'Needs a moon.',
        said: [lacks, { say: 'deviceHolders', with: [{ hole: 'devices', with: [{ say: 'moon' }] }] }],
      }),
    ).toBe('Needs a moon.')
  })
})
