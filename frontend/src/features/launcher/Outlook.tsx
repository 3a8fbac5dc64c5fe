import {
  CircleAlert,
  CircleDashed,
  CloudDownload,
  Hourglass,
  LoaderCircle,
  Rocket,
  TriangleAlert,
  type LucideIcon,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useMachines } from '@/api/hooks'
import type { LaunchForecast, Wait } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { hintText, messageText } from '@/lib/phrases'
import { WaitReason } from '@/ui/WaitReason'
import css from './launcher.module.css'
import type { ImageState } from './images'
import type { Issues } from './issueText'
import type { Judgement } from './useJudgement'

interface OutlookProps {
  judgement: Judgement
  shown: Issues
  image: ImageState
  /** How many sessions would be launched. */
  count: number
}

/** What would happen if it were launched now: starts at once, waits for something, pulls something. */
export function Outlook({ judgement, shown, image, count }: OutlookProps) {
  const { t } = useTranslation('launcher')
  const { errors, preview, current } = judgement
  if (errors.length > 0 && !shown.all.some((issue) => issue.severity === 'error')) {
    return (
      <Line icon={CircleDashed} kind="busy" title={t('outlook.incomplete')}>
        {t('outlook.missing', { count: errors.length })}
      </Line>
    )
  }
  if (errors.length > 0) {
    return (
      <Line icon={CircleAlert} kind="bad" title={t('outlook.errors', { count: errors.length })}>
        {t('outlook.errorsText')}
      </Line>
    )
  }
  if (preview.isError) {
    const problem = asProblem(preview.error)
    return (
      <Line icon={TriangleAlert} kind="slow" title={t('outlook.unknown')}>
        {messageText(problem)} {hintText(problem)} {t('outlook.unchecked')}
      </Line>
    )
  }
  const told = preview.data
  if (!told) return <Line icon={LoaderCircle} kind="busy" title={t('outlook.asking')} />
  const pulls = !told.image && !image.installed
  const size = image.size > 0 ? formatBytes(image.size) : ''
  return (
    <div className={current ? undefined : css.stale} aria-live="polite">
      {alike(told.forecasts).map((group) => (
        <Group key={group.first} group={group} count={count} />
      ))}
      {told.forecasts.length < count ? (
        <Line icon={CircleDashed} kind="busy" title={t('outlook.untold', { count: count - told.forecasts.length })}>
          {t('outlook.untoldText', { agent: told.agent })}
        </Line>
      ) : null}
      {pulls ? (
        <Line
          icon={CloudDownload}
          kind="slow"
          title={size ? t('outlook.pullsSize', { amount: size }) : t('outlook.pulls')}
        >
          {t('outlook.pullsText')}
        </Line>
      ) : null}
    </div>
  )
}

/** Sessions of a launch that would start on one machine, or wait there. */
interface Alike {
  first: number
  agent: string
  pulls: boolean
  wait: Wait | undefined
  count: number
  devices: Set<string>
}

/** Groups the sessions of a launch, in the order of the first of each group. */
function alike(forecasts: readonly LaunchForecast[]): Alike[] {
  const groups = new Map<string, Alike>()
  forecasts.forEach(({ agent, pulls, wait, placements }, first) => {
    const key = JSON.stringify([agent, wait !== undefined])
    const group = groups.get(key) ?? { first, agent, pulls, wait, count: 0, devices: new Set<string>() }
    group.count++
    placements.forEach(({ name }) => group.devices.add(name))
    groups.set(key, group)
  })
  return [...groups.values()]
}

/** What the sessions of a group would do; count is of the whole launch. */
function Group({ group, count }: { group: Alike; count: number }) {
  const { t, i18n } = useTranslation('launcher')
  const machines = useMachines().data
  const only = (machines?.length ?? 0) > 1 ? undefined : machines?.find((m) => m.agent === group.agent)?.hostname
  const agent = only || group.agent
  const several = count > 1
  const number = { count: group.count }
  if (group.wait) {
    return (
      <Line icon={Hourglass} kind="slow" title={several ? t('outlook.manyWait', number) : t('outlook.waits')}>
        {several && agent ? `${t('outlook.on', { agent })} ` : ''}
        <WaitReason wait={group.wait} machine={group.agent} />
      </Line>
    )
  }
  const title = group.pulls ? 'startsAfterPull' : 'starts'
  const devices = new Intl.ListFormat(i18n.language, { type: 'unit' }).format(group.devices)
  return (
    <Line icon={Rocket} kind="good" title={several ? t(`outlook.many.${title}`, number) : t(`outlook.${title}`)}>
      {agent ? t(devices ? 'outlook.onDevices' : 'outlook.on', { agent, devices }) : ''}
    </Line>
  )
}

function Line({
  icon: Icon,
  kind,
  title,
  children,
}: {
  icon: LucideIcon
  kind: 'good' | 'slow' | 'bad' | 'busy'
  title: string
  children?: ReactNode
}) {
  return (
    <div className={`${css.outlook} ${css[kind]}`} data-outlook={kind}>
      <Icon size={16} aria-hidden className={Icon === LoaderCircle ? css.turn : undefined} />
      <div>
        <div className={css.outlookTitle}>{title}</div>
        {children ? <div className={css.outlookText}>{children}</div> : null}
      </div>
    </div>
  )
}
