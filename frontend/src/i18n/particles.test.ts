import { afterEach, describe, expect, it } from 'vitest'
import i18next from 'i18next'
import { changeLanguage } from './i18n'
import { withParticles } from './particles'

afterEach(() => changeLanguage('en'))

describe('withParticles', () => {
  it.each([
    ['세션이(가)', '세션이'],
    ['노트이(가)', '노트가'],
    ['서울(으)로', '서울로'],
    ['부산(으)로', '부산으로'],
    ['대구(으)로', '대구로'],
    ['메일을(를)', '메일을'],
    ['“노트”을(를)', '“노트”를'],
    ['<b>세션</b>은(는)', '<b>세션</b>은'],
    ['노트 3(으)로', '노트 3으로'],
    ['코드 137(으)로', '코드 137로'],
    ['코드 137 (SIGKILL)(으)로', '코드 137 (SIGKILL)로'],
    ['코드 2(으)로', '코드 2로'],
    ['10을(를)', '10을'],
    ['50%을(를)', '50%를'],
    ['4 GiB을(를)', '4 GiB를'],
    ['812 B은(는)', '812 B는'],
    ['GPU이(가)', 'GPU가'],
    ['VM은(는)', 'VM은'],
    ['URL(으)로', 'URL로'],
    ['train-a이(가)', 'train-a가'],
    ['plan-l(이)라는', 'plan-l이라는'],
    ['server은(는)', 'server는'],
    ['model이(가)', 'model이'],
    ['model(으)로', 'model로'],
    ['training(으)로', 'training으로'],
    ['/mnt/data(으)로', '/mnt/data로'],
    ['test이(가)', 'test이(가)'],
    ['dataset을(를)', 'dataset을(를)'],
    ['name_이(가)', 'name_이(가)'],
    ['이(가)', '이(가)'],
    ['노트와(과) 세션와(과)', '노트와 세션과'],
  ])('writes %s as %s', (text, want) => expect(withParticles(text)).toBe(want))

  it('chooses them in whatever the page says in Korean, and in nothing else', async () => {
    expect(i18next.t('files:remove.title', { name: '이(가)' })).toContain('이(가)')
    await changeLanguage('ko')
    expect(i18next.t('folders:trashed', { name: '노트' })).toBe('노트를 휴지통으로 옮겼습니다.')
    expect(i18next.t('folders:trashed', { name: '사진' })).toBe('사진을 휴지통으로 옮겼습니다.')
  })
})
