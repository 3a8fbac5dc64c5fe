import { createContext, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import type { SessionBook } from '@/api/book'
import { useSessionBook } from '@/api/hooks'
import { now } from '@/lib/now'
import { readStored, writeStored } from '@/lib/stored'
import { kept, type LastEnds, lastEnds, nextNotices, type Notice } from './notices'

interface Notices {
  notices: Notice[]
  unread: number
  /** Takes the cards of sessions from the dock. */
  close: (ids: readonly string[]) => void
  /** The same by hand: what they said has been read. */
  dismiss: (ids: readonly string[]) => void
  readAll: () => void
  clear: () => void
}

const NoticesContext = createContext<Notices>({
  notices: [],
  unread: 0,
  close: () => {},
  dismiss: () => {},
  readAll: () => {},
  clear: () => {},
})

export function useNotices(): Notices {
  return useContext(NoticesContext)
}

const none: Notice[] = []
const nothing: LastEnds = {}

function stored(): Notice[] {
  const notices = readStored<Notice[]>('notices', none)
  return Array.isArray(notices) ? notices.slice(0, kept).map((n) => ({ ...n, open: false })) : none
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
    const ends = readStored<LastEnds>('notices-ends', nothing)
    setNotices((old) => nextNotices(old, last, book, now(), ends))
    const later = lastEnds(ends, book)
    if (later !== ends) writeStored('notices-ends', later)
  }, [book])
  useEffect(() => writeStored('notices', notices), [notices])

  const value = useMemo<Notices>(() => {
    const change = (ids: readonly string[], to: Partial<Notice>) =>
      setNotices((old) => old.map((n) => (ids.includes(n.id) ? { ...n, ...to } : n)))
    return {
      notices,
      unread: notices.filter((n) => !n.read).length,
      close: (ids) => change(ids, { open: false }),
      dismiss: (ids) => change(ids, { open: false, read: true }),
      readAll: () => setNotices((old) => (old.some((n) => !n.read) ? old.map((n) => ({ ...n, read: true })) : old)),
      clear: () => setNotices((old) => old.filter((n) => n.open)),
    }
  }, [notices])
  return <NoticesContext value={value}>{children}</NoticesContext>
}
