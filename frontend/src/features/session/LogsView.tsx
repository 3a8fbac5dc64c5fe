import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { target } from '@/api/client'
import type { Session } from '@/api/types.gen'
import { stripAnsi } from '@/lib/ansi'
import { saveUrl } from '@/lib/save'
import { isLive } from '@/lib/status'
import { useStored } from '@/lib/stored'
import { ErrorState } from '@/ui/ErrorState'
import { LogLineView } from './LogLineView'
import { LogsBar, type LogView } from './LogsBar'
import css from './LogsView.module.css'
import { useLog } from './useLog'

const lineHeight = 18
const usualView: LogView = { times: false, wrap: false }

/** A session's log: live while it runs, kept when it has ended. */
export function LogsView({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const live = isLive(session.status)
  const [params, setParams] = useSearchParams()
  const asked = session.kernels.find((k) => k.name === params.get('kernel'))
  const kernel = (asked ?? session.kernels[0])?.name ?? 'main1'
  const setKernel = (name: string) =>
    setParams(
      (old) => {
        const next = new URLSearchParams(old)
        next.set('kernel', name)
        return next
      },
      { replace: true },
    )
  const log = useLog(session.id, kernel, live, session.startedAt ? (live ? 'live' : 'ended') : 'new')
  const [view, setView] = useStored('logs', usualView)
  const [needle, setNeedle] = useState('')
  const [current, setCurrent] = useState(-1) // none before the first step
  const [follow, setFollow] = useState(true)
  const frame = useRef<HTMLDivElement>(null)
  const { lines } = log

  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => lineHeight,
    overscan: 20,
    getItemKey: (i) => lines[i]?.number ?? i,
  })
  const wanted = useDeferredValue(needle.toLowerCase())
  const hits = useMemo(() => {
    if (!wanted) return []
    const found: number[] = []
    lines.forEach((line, i) => {
      if (stripAnsi(line.text).toLowerCase().includes(wanted)) found.push(i)
    })
    return found
  }, [lines, wanted])

  useEffect(() => {
    if (follow && lines.length > 0) rows.scrollToIndex(lines.length - 1, { align: 'end' })
  }, [follow, lines.length, rows])
  const goTo = useCallback(
    (index: number) => {
      const line = hits[index]
      if (line === undefined) return
      setFollow(false)
      setCurrent(index)
      rows.scrollToIndex(line, { align: 'center' })
    },
    [hits, rows],
  )
  const search = (text: string) => {
    setNeedle(text)
    setCurrent(-1)
  }
  const scrolled = () => {
    const element = frame.current
    if (!element) return
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < lineHeight * 2
    if (atEnd !== follow && (atEnd || !rows.isScrolling || rows.scrollDirection === 'backward')) setFollow(atEnd)
  }
  const download = () =>
    saveUrl(
      `${session.name}-${kernel}-${new Date().toISOString().replaceAll(':', '')}.log`,
      target('logs', { path: { id: session.id }, query: { kernel, timestamps: view.times } }),
    )

  const bar = (
    <LogsBar
      kernels={session.kernels}
      kernel={kernel}
      onKernel={setKernel}
      needle={needle}
      onNeedle={search}
      hits={hits.length}
      current={Math.min(Math.max(current, 0), Math.max(0, hits.length - 1))}
      onStep={(by) => goTo((Math.max(current, by < 0 ? 0 : -1) + by + hits.length) % Math.max(1, hits.length))}
      view={view}
      onView={setView}
      follow={follow}
      onFollow={setFollow}
      onDownload={download}
    />
  )
  if (log.problem && lines.length === 0) {
    return (
      <div className={css.view}>
        {bar}
        {live && !session.startedAt ? (
          <div className={css.middle}>{t('logs.notYet')}</div>
        ) : (
          <ErrorState problem={log.problem} onRetry={log.retry} />
        )}
      </div>
    )
  }
  return (
    <div className={css.view}>
      {bar}
      {log.broken ? (
        <div className={css.note} role="status">
          {t('logs.broken')}
        </div>
      ) : null}
      {log.dropped > 0 ? <div className={css.note}>{t('logs.dropped', { count: log.dropped })}</div> : null}
      <div
        ref={frame}
        className={css.scroll}
        role="log"
        aria-live="off"
        aria-label={t('logs.label', { name: session.name })}
        tabIndex={0}
        onScroll={scrolled}
        onWheel={(e) => e.deltaY < 0 && setFollow(false)}
      >
        {lines.length === 0 ? (
          <div className={css.middle} style={{ height: '100%' }} role="status">
            {t(
              log.loading
                ? 'logs.reading'
                : !session.startedAt && live
                  ? 'logs.notYet'
                  : live
                    ? 'logs.empty'
                    : 'logs.emptyEnded',
            )}
          </div>
        ) : null}
        <div className={view.wrap ? css.wrapInner : css.inner} style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => {
            const line = lines[row.index]
            if (!line) return null
            const marked = wanted !== '' && hits[current] === row.index
            return (
              <div
                key={row.key}
                data-index={row.index}
                ref={view.wrap ? rows.measureElement : undefined}
                className={`${css.line} ${view.wrap ? css.wrap : ''} ${marked ? css.currentLine : ''}`}
                style={{ transform: `translateY(${row.start}px)`, ...(view.wrap ? {} : { height: lineHeight }) }}
              >
                <LogLineView line={line} times={view.times} needle={needle} />
              </div>
            )
          })}
        </div>
      </div>
      <div className={css.foot}>
        <span className={css.state}>
          <i className={`${css.dot} ${log.complete || !live ? css.dotOff : ''}`} />
          {t(log.complete || !live ? 'logs.ended' : 'logs.live')}
        </span>
        <span>{t('logs.lines', { count: log.dropped + lines.length })}</span>
      </div>
    </div>
  )
}
