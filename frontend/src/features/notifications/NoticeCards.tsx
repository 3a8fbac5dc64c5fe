import { Button, Tooltip } from 'antd'
import { CirclePower, LayoutGrid, ScrollText, SquareTerminal, X } from 'lucide-react'
import { useState, type CSSProperties } from 'react'
import { useTranslation } from 'react-i18next'
import { useSessionBook } from '@/api/hooks'
import { useOpenings } from '@/api/openings'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { estimateText, messageText } from '@/lib/phrases'
import { isLive } from '@/lib/status'
import { useNow } from '@/lib/useNow'
import { PullBar } from '@/ui/PullBar'
import { StatusBadge } from '@/ui/StatusBadge'
import { usePullTexts, useWhy } from '@/ui/useWhy'
import type { Notice } from './notices'
import css from './notifications.module.css'
import { useNotices } from './NoticesProvider'
import { OpeningCards } from './OpeningCards'

/** How many cards are shown at once. */
const cardsShown = 3

/** How long after its start a session's card keeps its full size, in ms. */
const fullFor = 30_000

function Buttons({ session }: { session: Session }) {
  const { t } = useTranslation()
  const actions = useSessionActions()
  const running = session.status === 'RUNNING'
  if (!session.startedAt) return null
  return (
    <div className={css.buttons}>
      {running ? (
        <>
          <Button
            size="small"
            type="primary"
            icon={<LayoutGrid size={14} />}
            onClick={() => actions.openApps(session.id)}
          >
            {t('action.apps')}
          </Button>
          <Button size="small" icon={<SquareTerminal size={14} />} onClick={() => actions.openTerminal(session.id)}>
            {t('action.terminal')}
          </Button>
        </>
      ) : null}
      <Button size="small" icon={<ScrollText size={14} />} onClick={() => actions.showLogs(session.id)}>
        {t('action.logs')}
      </Button>
    </div>
  )
}

function Card({ notice, session }: { notice: Notice; session: Session }) {
  const { t } = useTranslation(['notifications', 'common'])
  const actions = useSessionActions()
  const { dismiss } = useNotices()
  const [hovered, setHovered] = useState(false)
  const pullTexts = usePullTexts()
  const why = useWhy()(session)
  const running = session.status === 'RUNNING'
  const now = useNow(running)
  const settled = running && !hovered && now - notice.at > fullFor
  const text =
    session.status === 'PULLING' && session.pull
      ? pullTexts(session.pull).join(' · ')
      : (session.error && messageText(session.error)) || why
  return (
    <div
      className={`${css.card} ${settled ? css.quiet : ''}`}
      data-session={session.id}
      onMouseEnter={() => setHovered(true)}
      onMouseLeave={() => setHovered(false)}
      onFocus={() => setHovered(true)}
    >
      <div className={css.head}>
        <button type="button" className={css.name} onClick={() => actions.showDetail(session.id)}>
          {session.name}
        </button>
        <div className={css.headEnd}>
          <StatusBadge status={session.status} failed={session.result === 'failure'} />
          {isLive(session.status) && session.status !== 'TERMINATING' && !session.ending ? (
            <Tooltip title={t('common:action.terminate')}>
              <Button
                type="text"
                size="small"
                aria-label={t('common:action.terminate')}
                icon={<CirclePower size={14} />}
                onClick={() => actions.terminate([session.id])}
              />
            </Tooltip>
          ) : null}
          <Button
            type="text"
            size="small"
            aria-label={t('notifications:dismiss', { name: session.name })}
            icon={<X size={14} />}
            onClick={() => dismiss(session.id)}
          />
        </div>
      </div>
      {settled ? null : (
        <>
          {session.status === 'PULLING' && session.pull ? (
            <div className={css.pull}>
              <PullBar pull={session.pull} />
            </div>
          ) : null}
          {text ? <div className={css.text}>{text}</div> : null}
          {session.status === 'PENDING' && session.wait ? (
            <div className={css.text}>{t('common:wait.start', { estimate: estimateText(session.wait) })}</div>
          ) : null}
          <Buttons session={session} />
        </>
      )}
    </div>
  )
}

interface NoticeCardsProps {
  /** Room that something else takes at the right, in pixels. */
  inset: number
  /** A session that is in full view already: its card would only be in the way. */
  hide: string | undefined
  onMore: () => void
}

/** The cards at the bottom right: one a session, changing in place, the newest at the bottom. */
export function NoticeCards({ inset, hide, onMore }: NoticeCardsProps) {
  const { t } = useTranslation('notifications')
  const { notices } = useNotices()
  const book = useSessionBook().data ?? {}
  const open = notices.filter((n) => n.open && n.id !== hide && book[n.id])
  const openings = useOpenings()
  if (open.length === 0 && openings.length === 0) return null
  const style: CSSProperties = { right: inset + 20 }
  return (
    <section className={css.stack} style={style} aria-label={t('region')} aria-live="polite">
      {open.length > cardsShown ? (
        <Button size="small" className={css.more ?? ''} onClick={onMore}>
          {t('more', { count: open.length - cardsShown })}
        </Button>
      ) : null}
      {open
        .slice(0, cardsShown)
        .reverse()
        .map((notice) => {
          const session = book[notice.id]
          return session ? <Card key={notice.id} notice={notice} session={session} /> : null
        })}
      <OpeningCards />
    </section>
  )
}
