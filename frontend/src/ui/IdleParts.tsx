import { Button, Popover } from 'antd'
import {
  CircleCheck,
  CircleDashed,
  Hourglass,
  Infinity as Endless,
  ShieldCheck,
  TriangleAlert,
  type LucideIcon,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { countsDown, idleOutlook, toneOfMetric, toneOfTime, type IdleSubject, type IdleTone } from '@/lib/idle'
import { formatPercent } from '@/lib/share'
import { formatElapsed, formatExact, formatRelative, past } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import css from './Idle.module.css'

/** A check as it is shown. An api IdleCheck fits. */
export interface IdleShown extends IdleSubject {
  message: string
  judgedFrom?: string
  metrics: readonly { name: string; average: number; threshold: number }[]
  checkedAt: string
}

const toneIcons: Record<IdleTone, LucideIcon> = {
  kept: ShieldCheck,
  bad: TriangleAlert,
  warn: Hourglass,
  good: CircleCheck,
  none: Endless,
}

interface IdleProps {
  checks: readonly IdleShown[]
  keepUntil: string | undefined
  /** Checks are on that have not judged the session yet. */
  unjudged?: boolean
}

/** How long a session still has by its idle checks: a time, a shape and a colour. */
export function IdleBadge({ checks, keepUntil }: IdleProps) {
  const { t } = useTranslation()
  const now = useNow(checks.length > 0 || keepUntil !== undefined)
  const { tone, left } = idleOutlook(checks, keepUntil, now)
  if (checks.length === 0 && tone === 'none') return <span className={css.dim}>–</span>
  const Icon = toneIcons[tone]
  const text = left === undefined ? t('idle.watching') : left === 0 ? t('idle.now') : formatElapsed(left)
  return (
    <span className={`${css.badge} ${css[tone]} num`} data-tone={tone}>
      <Icon size={13} aria-hidden />
      <span className="unseen">{t(`idle.tone.${tone}`)}: </span>
      {text}
    </span>
  )
}

function Metrics({ check }: { check: IdleShown }) {
  const { t } = useTranslation()
  return (
    <div className={css.metrics}>
      {check.metrics.map(({ name, average, threshold }) => {
        const tone = toneOfMetric(average, threshold)
        return (
          <div
            key={name}
            className={css.metric}
            title={t(`idle.${tone === 'bad' ? 'metricBad' : tone === 'warn' ? 'metricWarn' : 'metricGood'}`)}
          >
            <span>{t(`idle.metric.${name as 'cpu'}`, { defaultValue: name })}</span>
            <span className={css.track} aria-hidden>
              <i className={css[tone]} style={{ width: `${Math.min(100, (average / (threshold * 3 || 1)) * 100)}%` }} />
              <b style={{ left: '33.3%' }} />
            </span>
            <span className={`num ${css[tone]}`}>
              {t('idle.value', { average: formatPercent(average), threshold: formatPercent(threshold) })}
            </span>
          </div>
        )
      })}
    </div>
  )
}

/** Every check with what it found, in words and numbers, and a countdown where it would end the session. */
export function IdleChecks({ checks, keepUntil, unjudged = false }: IdleProps) {
  const { t } = useTranslation()
  const now = useNow()
  if (checks.length === 0) return <p className={css.nothing}>{t(unjudged ? 'idle.unjudgedText' : 'idle.neverText')}</p>
  return (
    <div className={css.checks}>
      {keepUntil && Date.parse(keepUntil) > now ? (
        <div className={`${css.badge} ${css.kept}`} title={formatExact(keepUntil)}>
          <ShieldCheck size={13} aria-hidden />
          {t('idle.until', { when: formatExact(keepUntil) })}
        </div>
      ) : null}
      {checks.map((check) => {
        const left = check.expiresAt && countsDown(check) ? Math.max(0, Date.parse(check.expiresAt) - now) : undefined
        return (
          <section key={check.checker} className={css.check} data-checker={check.checker}>
            <div className={css.checkHead}>
              <b>{t(`idle.${check.checker as 'network'}`, { defaultValue: check.checker })}</b>
              <span className={css.state} data-state={check.state}>
                {t(`idle.state.${check.state as 'idle'}`, { defaultValue: check.state })}
              </span>
              {left === undefined ? null : (
                <span className={`${css.left} ${css[toneOfTime(left)]} num`} title={formatExact(check.expiresAt ?? '')}>
                  {left === 0 ? t('idle.now') : t('idle.in', { time: formatElapsed(left) })}
                </span>
              )}
              {check.judgedFrom ? (
                <span className={`${css.left} num`} title={formatExact(check.judgedFrom)}>
                  {t('idle.judgedIn', { time: formatElapsed(Math.max(0, Date.parse(check.judgedFrom) - now)) })}
                </span>
              ) : null}
            </div>
            <div className={css.text}>
              {check.message} {check.state === 'unknown' ? t('idle.unknownText') : ''}
            </div>
            {check.metrics.length > 0 ? <Metrics check={check} /> : null}
            <div className={css.when}>
              {t('idle.checked', { when: formatRelative(past(check.checkedAt, now), now) })}
            </div>
          </section>
        )
      })}
    </div>
  )
}

/** What each colour means, exactly as it is worked out. */
export function IdleLegend({ metrics }: { metrics: boolean }) {
  const { t } = useTranslation()
  const row = (tone: IdleTone, text: string) => {
    const Icon = toneIcons[tone]
    return (
      <li key={tone} className={css[tone]}>
        <Icon size={13} aria-hidden /> <span>{text}</span>
      </li>
    )
  }
  return (
    <div className={css.legend}>
      <div className={css.legendTitle}>{t('idle.legend')}</div>
      <ul>{(['bad', 'warn', 'good', 'kept', 'none'] as const).map((tone) => row(tone, t(`idle.tone.${tone}`)))}</ul>
      <div>{t('idle.legendTime')}</div>
      {metrics ? (
        <ul>
          {(['metricBad', 'metricWarn', 'metricGood'] as const).map((key) => (
            <li key={key} className={css[{ metricBad: 'bad', metricWarn: 'warn', metricGood: 'good' }[key]]}>
              <CircleDashed size={13} aria-hidden /> <span>{t(`idle.${key}`)}</span>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}

export const keepHours = [1, 4, 12, 24] as const

/** Buttons that protect a session for so many hours. */
export function KeepButtons({ onKeep }: { onKeep: (hours: number) => void }) {
  const { t } = useTranslation()
  return (
    <span className={css.keep}>
      {t('idle.keep')}
      {keepHours.map((hours) => (
        <Button
          key={hours}
          size="small"
          aria-label={`${t('idle.keep')} ${t('idle.keepShort', { count: hours })}`}
          onClick={() => onKeep(hours)}
        >
          {t('idle.keepShort', { count: hours })}
        </Button>
      ))}
    </span>
  )
}

/** The badge, and behind it all checks, the legend and the way to keep the session. */
export function IdlePopover({
  checks,
  keepUntil,
  unjudged,
  onKeep,
  children,
}: IdleProps & { onKeep?: ((hours: number) => void) | undefined; children: ReactNode }) {
  const { t } = useTranslation()
  const content = () => (
    <div className={css.popover} onClick={(e) => e.stopPropagation()}>
      <div className={css.popoverTitle}>{t('idle.title')}</div>
      <IdleChecks checks={checks} keepUntil={keepUntil} unjudged={unjudged ?? false} />
      {onKeep ? <KeepButtons onKeep={onKeep} /> : null}
      {checks.length > 0 ? <IdleLegend metrics={checks.some((c) => c.metrics.length > 0)} /> : null}
    </div>
  )
  return (
    <Popover content={content} trigger={['click']} placement="left" destroyOnHidden>
      {children}
    </Popover>
  )
}
