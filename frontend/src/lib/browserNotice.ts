/** What the browser is to show outside of the page. */
interface BrowserNotice {
  session: string
  title: string
  text: string
  urgent: boolean
  at: string
}

/** How old a notice may be that a page hears of when it reconnects, in ms. */
const fresh = 60_000

type NoticePermission = 'granted' | 'denied' | 'default' | 'unsupported'

/** Whether this browser may show notices. */
export function noticePermission(): NoticePermission {
  return typeof Notification === 'undefined' ? 'unsupported' : Notification.permission
}

export async function askForNotices(): Promise<NoticePermission> {
  return noticePermission() === 'default' ? Notification.requestPermission() : noticePermission()
}

/** Shows a notice if the browser may; several pages show one together. A click opens its session. */
export function browserNotice(notice: BrowserNotice, now = Date.now()): void {
  if (noticePermission() !== 'granted' || now - Date.parse(notice.at) > fresh) return
  const shown = new Notification(notice.title, {
    body: notice.text,
    tag: notice.session || 'slipway',
    icon: '/icon.svg',
    requireInteraction: notice.urgent,
  })
  shown.onclick = () => {
    window.focus()
    if (notice.session) location.assign(`/sessions/${encodeURIComponent(notice.session)}`)
    shown.close()
  }
}
