import { useQueryClient } from '@tanstack/react-query'
import { createContext, useContext, useEffect, useMemo, type ReactNode } from 'react'
import { applyEvent } from '@/api/book'
import { target } from '@/api/client'
import { EventChannel, type Socket } from '@/api/events'
import { keys } from '@/api/keys'
import { browserNotice } from '@/lib/browserNotice'

const RetryContext = createContext<() => void>(() => {})

/** Returns what makes the page try to reconnect at once. */
export function useReconnect(): () => void {
  return useContext(RetryContext)
}

function eventsUrl(): string {
  return `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${target('events')}`
}

/** Holds the one event channel of the page and keeps Query current with it. */
export function LiveData({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const channel = useMemo(
    () =>
      new EventChannel({
        url: eventsUrl,
        open: (url) => new WebSocket(url) as unknown as Socket,
        onEvent: (event) => {
          applyEvent(client, event)
          if (event.notice) browserNotice(event.notice)
        },
        onConnection: (connection) => client.setQueryData(keys.connection, connection),
      }),
    [client],
  )
  useEffect(() => {
    const wake = () => channel.retryNow()
    channel.start()
    window.addEventListener('online', wake)
    window.addEventListener('focus', wake)
    return () => {
      window.removeEventListener('online', wake)
      window.removeEventListener('focus', wake)
      channel.stop()
    }
  }, [channel])
  const retry = useMemo(() => () => channel.retryNow(), [channel])
  return <RetryContext value={retry}>{children}</RetryContext>
}
