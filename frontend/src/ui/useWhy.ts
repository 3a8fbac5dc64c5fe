import { useTranslation } from 'react-i18next'
import { formatBytes, formatRate } from '@/lib/bytes'
import { isLive } from '@/lib/status'
import { formatSpan } from '@/lib/time'
import { messageText, waitTexts, type Told, type Waits } from '@/lib/phrases'

/** The part of a session that explains its status. An api Session fits. */
export interface StatusSubject {
  status: string
  reason: string
  type: string
  exitCode: number | null
  error?: Told
  wait?: Waits
  /** The machine that it is on. */
  agent?: string
  pull?: PullSubject
  /** Made of it as it ends. */
  endImage?: { state: string; name: string; kept: boolean }
}

export interface PullSubject {
  current: number
  total: number
  rate: number
  layersDone: number
  layers: number
}

/** How far a pull is, between 0 and 1; undefined while its size is unknown. */
export function pullShare(pull: PullSubject): number | undefined {
  return pull.total > 0 ? Math.min(1, pull.current / pull.total) : undefined
}

/** Milliseconds until a pull is done at its present rate; undefined where that is a guess. */
export function pullTimeLeft(pull: PullSubject): number | undefined {
  if (pull.total <= 0 || pull.rate <= 0) return undefined
  return ((pull.total - pull.current) / pull.rate) * 1000
}

/** Returns the sentence-like pieces of a pull: bytes, rate, time left, layers. */
export function usePullTexts(): (pull: PullSubject) => string[] {
  const { t } = useTranslation()
  return (pull) => {
    const left = pullTimeLeft(pull)
    const bytes =
      pull.total > 0
        ? t('pull.bytes', { current: formatBytes(pull.current), total: formatBytes(pull.total) })
        : formatBytes(pull.current)
    const texts = [bytes]
    if (pull.rate > 0) texts.push(formatRate(pull.rate))
    if (left !== undefined && left > 0)
      texts.push(t('pull.left', { time: formatSpan(Math.max(1000, Math.round(left / 1000) * 1000)) }))
    if (pull.layers > 0) texts.push(t('pull.layers', { done: pull.layersDone, total: pull.layers }))
    return texts
  }
}

/** Returns one short text that says why a session stands where it stands; empty where the status says it all. */
export function useWhy(): (subject: StatusSubject) => string {
  const { t } = useTranslation()
  const pullTexts = usePullTexts()
  return (subject) => {
    if (subject.status === 'PENDING' && subject.wait) return waitTexts(subject.wait, subject.agent).lead
    if (subject.status === 'PULLING' && subject.pull) return pullTexts(subject.pull).slice(0, 3).join(' · ')
    if (subject.status === 'TERMINATING' && subject.endImage?.state === 'running')
      return t('endImage.making', { name: subject.endImage.name })
    if (isLive(subject.status)) return ''
    const reason = subject.reason
      ? t(`reason.${subject.reason as 'task-failed'}`, { defaultValue: subject.reason })
      : ''
    const exit =
      subject.type === 'batch' && subject.exitCode !== null && subject.exitCode !== 0
        ? t('exitCode', { code: subject.exitCode })
        : ''
    const kept = subject.endImage?.kept ? t('endImage.kept') : ''
    return [reason, exit, kept].filter(Boolean).join(' · ') || (subject.error ? messageText(subject.error) : '')
  }
}
