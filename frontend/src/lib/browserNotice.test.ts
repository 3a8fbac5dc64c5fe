import { afterEach, describe, expect, it, vi } from 'vitest'
import { askForNotices, browserNotice, noticePermission } from './browserNotice'

const notice = {
  session: 'a',
  title: 'bert runs now',
  text: 'It was ready after 1m0s.',
  urgent: false,
  at: '2026-05-01T09:00:00Z',
}
const now = Date.parse(notice.at) + 1000

function pretend(permission: string) {
  const shown: unknown[][] = []
  const Fake = Object.assign(
    function (...args: unknown[]) {
      shown.push(args)
    },
    { permission, requestPermission: () => Promise.resolve((Fake.permission = 'granted')) },
  )
  vi.stubGlobal('Notification', Fake)
  return shown
}
afterEach(() => vi.unstubAllGlobals())

describe('browserNotice', () => {
  it('shows a notice where it is allowed, one for each session', () => {
    const shown = pretend('granted')
    browserNotice(notice, now)
    expect(shown).toEqual([
      ['bert runs now', { body: notice.text, tag: 'a', icon: '/icon.svg', requireInteraction: false }],
    ])
  })
  it('shows nothing that is forbidden or old', () => {
    const denied = pretend('denied')
    browserNotice(notice, now)
    expect(denied).toEqual([])
    const granted = pretend('granted')
    browserNotice(notice, now + 3_600_000)
    expect(granted).toEqual([])
  })
  it('asks once', async () => {
    pretend('default')
    expect(noticePermission()).toBe('default')
    expect(await askForNotices()).toBe('granted')
    vi.stubGlobal('Notification', undefined)
    expect(await askForNotices()).toBe('unsupported')
  })
})
