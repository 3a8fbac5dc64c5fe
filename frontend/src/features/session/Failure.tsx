import { useQuery } from '@tanstack/react-query'
import { Button } from 'antd'
import { CircleX, GitCompareArrows, ScrollText } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { open } from '@/api/client'
import type { Cause, Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { hintText, messageText } from '@/lib/phrases'
import { isLive } from '@/lib/status'
import css from './Failure.module.css'
import { LogBuffer } from './logBuffer'
import { LogLineView } from './LogLineView'
import drawer from './SessionDrawer.module.css'
import { SuccessDialog } from './SuccessDialog'

const shownLines = 20

/** The last line says most. */
function toEnd(log: HTMLElement | null): void {
  if (log) log.scrollTop = log.scrollHeight
}

/** What went wrong with a session; once it has ended, with the end of its log and the way to what went right. */
export function Failure({ session, error }: { session: Session; error: Cause }) {
  const { t } = useTranslation('session')
  const actions = useSessionActions()
  const [comparing, setComparing] = useState(false)
  // Of several containers, the one that failed.
  const kernel = (session.kernels.find((k) => k.exitCode) ?? session.kernels[0])?.name ?? ''
  const ended = !isLive(session.status)
  const log = useQuery({
    queryKey: ['log-end', session.id, kernel],
    queryFn: async ({ signal }) => {
      const buffer = new LogBuffer(shownLines)
      const response = await open('logs', { path: { id: session.id }, query: { kernel, tail: shownLines }, signal })
      buffer.push(await response.text())
      return buffer.lines()
    },
    enabled: ended && kernel !== '',
    staleTime: Infinity,
  })
  const lines = log.data ?? []
  return (
    <div className={`${drawer.notice} ${drawer.noticeBad}`} role="alert">
      <CircleX size={16} aria-hidden />
      <div className={drawer.noticeBody}>
        <div className={drawer.noticeTitle}>{messageText(error)}</div>
        {error.hint ? <div className={drawer.noticeText}>{hintText(error)}</div> : null}
        <code className={`${drawer.mono} ${drawer.dim}`}>{error.code}</code>
        {lines.length > 0 ? (
          <div
            ref={toEnd}
            className={css.log}
            role="region"
            tabIndex={0}
            aria-label={t('failure.log', { count: lines.length })}
          >
            {lines.map((line) => (
              <div key={line.number}>
                <LogLineView line={line} times={false} needle="" />
              </div>
            ))}
          </div>
        ) : null}
        {ended ? (
          <div className={drawer.noticeButtons}>
            {lines.length > 0 ? (
              <Button size="small" icon={<ScrollText size={14} />} onClick={() => actions.showLogs(session.id, kernel)}>
                {t('failure.whole')}
              </Button>
            ) : null}
            <Button size="small" icon={<GitCompareArrows size={14} />} onClick={() => setComparing(true)}>
              {t('failure.compare')}
            </Button>
          </div>
        ) : null}
      </div>
      {comparing ? <SuccessDialog session={session} onClose={() => setComparing(false)} /> : null}
    </div>
  )
}
