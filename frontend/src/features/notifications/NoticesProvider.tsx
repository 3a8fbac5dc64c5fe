import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import type { SessionBook } from '@/api/book'
import { useSessionBook } from '@/api/hooks'
import { now, realLength } from '@/lib/now'
import { isLive } from '@/lib/status'
import { readStored, writeStored } from '@/lib/stored'
import { kept, nextNotices, type Notice } from './notices'

interface Notices {
  notices: Notice[]
  unread: number
  dismiss: (id: string) => void
  readAll: () => void
  clear: () => void
}

const NoticesContext = createContext<Notices>({
  notices: [],
  unread: 0,
  dismiss: () => {},
  readAll: () => {},
  clear: () => {},
})

export function useNotices(): Notices {
  return useContext(NoticesContext)
}

const none: Notice[] = []

function stored(): Notice[] {
  const notices = readStored<Notice[]>('notices', none)
  return Array.isArray(notices) ? notices.slice(0, kept).map((n) => ({ ...n, open: false })) : none
}

/** How long the card of an ended session stays, in ms: longer where something went wrong. */
function staysFor(notice: Notice): number {
  return notice.failed ? 12_000 : 5_000
}

/** Follows the sessions and keeps what is told of them. */
export function NoticesProvider({ children }: { children: ReactNode }) {
  const book = useSessionBook().data
  const [notices, setNotices] = useState(stored)
  const before = useRef<SessionBook | undefined>(undefined)

  useEffect(() => {
    if (!book) return
    const last = before.current
    before.current = book
    setNotices((old) => nextNotices(old, last, book, now()))
  }, [book])
  useEffect(() => writeStored('notices', notices), [notices])

  const close = useCallback(
    (id: string) => setNotices((old) => old.map((n) => (n.id === id ? { ...n, open: false } : n))),
    [],
  )
  useEffect(() => {
    const timers = notices
      .filter((n) => n.open && !isLive(n.status))
      .map((n) => setTimeout(() => close(n.id), Math.max(0, staysFor(n) - realLength(now() - n.at))))
    return () => timers.forEach(clearTimeout)
  }, [notices, close])

  const value = useMemo<Notices>(
    () => ({
      notices,
      unread: notices.filter((n) => !n.read).length,
      dismiss: (id) => setNotices((old) => old.map((n) => (n.id === id ? { ...n, open: false, read: true } : n))),
      readAll: () => setNotices((old) => (old.some((n) => !n.read) ? old.map((n) => ({ ...n, read: true })) : old)),
      clear: () => setNotices((old) => old.filter((n) => n.open)),
    }),
    [notices],
  )
  return <NoticesContext value={value}>{children}</NoticesContext>
}
