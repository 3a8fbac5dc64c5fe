import { Button } from 'antd'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useIsMine, useSessionBook } from '@/api/hooks'
import { useOpenings } from '@/api/openings'
import { now, realLength } from '@/lib/now'
import { useSteady } from '@/lib/steady'
import { useBox } from '@/lib/useBox'
import { LaunchChip, LaunchPanel } from './LaunchCard'
import { closesAt, type Launch, launchesOf } from './launches'
import css from './notifications.module.css'
import { useNotices } from './NoticesProvider'
import { OpeningCards } from './OpeningCards'
import { ReclaimCards, useEnding } from './ReclaimCards'

/** How many cards are shown at once. */
const cardsShown = 3

const idsOf = (launch: Launch) => launch.sessions.map((s) => s.id)

/** Closes the cards of launches with which nothing more happens, but for the one that is being read. */
function useClosing(launches: readonly Launch[], reading: string | null): void {
  const { close } = useNotices()
  useEffect(() => {
    const timers = launches.flatMap((launch) => {
      const at = launch.key === reading ? undefined : closesAt(launch)
      return at === undefined ? [] : [setTimeout(() => close(idsOf(launch)), Math.max(0, realLength(at - now())))]
    })
    return () => timers.forEach(clearTimeout)
  })
}

interface NoticeDockProps {
  /** A session that is in full view already: its card would only be in the way. */
  hide: string | undefined
  onMore: () => void
}

/**
 * What goes on, below the page: it takes room of its own, so it never lies over what is to be read or pressed, and
 * drawers end above it. From top to bottom: sessions that are about to be reclaimed, apps that start, and launches,
 * which are collapsed to one line.
 */
export function NoticeDock({ hide, onMore }: NoticeDockProps) {
  const { t } = useTranslation('notifications')
  const { notices, dismiss } = useNotices()
  const book = useSessionBook().data ?? {}
  const isMine = useIsMine()
  const ending = useEnding()
  const openings = useOpenings()
  const [chosen, setChosen] = useState<string | null>(null)
  const seen = (id: string) => id === hide || ending.some(({ sessions }) => sessions.some((s) => s.id === id))
  const launches = launchesOf(notices, book).filter((l) => l.sessions.some((s) => isMine(s)) && !idsOf(l).every(seen))
  const opened = launches.find((l) => l.key === chosen)
  useClosing(launches, opened?.key ?? null)
  const shown = launches.slice(0, cardsShown)
  return (
    <Frame label={t('region')} empty={launches.length + openings.length + ending.length === 0}>
      <ReclaimCards ending={ending} />
      <OpeningCards />
      {opened ? <LaunchPanel launch={opened} onClose={() => setChosen(null)} /> : null}
      {launches.length > 0 ? (
        <ul className={css.strip}>
          {shown.map((launch) => (
            <LaunchChip
              key={launch.key}
              launch={launch}
              open={launch === opened}
              onOpen={() => setChosen(launch === opened ? null : launch.key)}
              onDismiss={() => dismiss(idsOf(launch))}
            />
          ))}
          {launches.length > cardsShown ? (
            <li>
              <Button size="small" type="text" onClick={onMore}>
                {t('more', { count: launches.length - cardsShown })}
              </Button>
            </li>
          ) : null}
        </ul>
      ) : null}
    </Frame>
  )
}

/** Sessions that are about to be reclaimed, in a window that shows nothing else of the dock. */
export function ReclaimDock() {
  const { t } = useTranslation('notifications')
  const ending = useEnding()
  return (
    <Frame label={t('region')} empty={ending.length === 0}>
      <ReclaimCards ending={ending} />
    </Frame>
  )
}

function Frame({ label, ...props }: { label: string; empty: boolean; children: ReactNode }) {
  const frame = useRef<HTMLElement>(null)
  const { empty, children } = useSteady(props)
  const { height } = useBox(frame)
  useEffect(() => {
    document.documentElement.style.setProperty('--dock', `${height}px`)
    return () => void document.documentElement.style.removeProperty('--dock')
  }, [height])
  return (
    <section ref={frame} className={`${css.dock} ${empty ? css.none : ''}`} aria-label={label} aria-live="polite">
      {children}
    </section>
  )
}
