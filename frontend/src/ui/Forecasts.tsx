import { Hourglass, Rocket } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Waits } from '@/lib/phrases'
import { OutlookLine as Line } from './OutlookLine'
import { WaitReason } from './WaitReason'

/** What one session of a launch would do now. */
interface Forecast {
  agent: string
  pulls: boolean
  /** Undefined: it would start at once. */
  wait?: Waits | undefined
  /** Devices that it would get. */
  placements: readonly { name: string }[]
}

interface ForecastsProps {
  forecasts: readonly Forecast[]
  /** Of the launch; the last sessions of it may not be foreseen. */
  count: number
  /** The only machine that there is, as people call it; undefined: there are several. */
  only: string | undefined
}

/** What the sessions of a launch would do now. */
export function Forecasts({ forecasts, count, only }: ForecastsProps) {
  return alike(forecasts).map((group) => <Group key={group.first} group={group} count={count} only={only} />)
}

/** Sessions of a launch that would start on one machine, or wait there. */
interface Alike {
  first: number
  agent: string
  pulls: boolean
  wait: Waits | undefined
  count: number
  devices: Set<string>
}

/** Groups the sessions of a launch, in the order of the first of each group. */
function alike(forecasts: readonly Forecast[]): Alike[] {
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
function Group({ group, count, only }: { group: Alike; count: number; only: string | undefined }) {
  const { t, i18n } = useTranslation('launcher')
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
