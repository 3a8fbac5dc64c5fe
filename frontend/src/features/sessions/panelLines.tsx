import { Select } from 'antd'
import { useTranslation } from 'react-i18next'
import type { Amount, ResourceSummary } from '@/api/types.gen'
import { AmountLine, type LineAmount } from './AmountLine'
import { write, type Countable } from './panelText'
import { sumOf, type Sum } from './panels'

interface MyLineProps {
  sum: Sum
  /** What a session of one's own would find. */
  left: Amount
  live: number
  shown: readonly Countable[]
}

/** What one's own sessions hold of all machines that are reached. */
export function MyLine({ sum, left, live, shown }: MyLineProps) {
  const { t } = useTranslation('sessions')
  const amounts = shown.map((resource): LineAmount => ({
    key: resource,
    name: t(`panel.${resource}`),
    held: write(resource, sum.mine[resource]),
    most: write(resource, sum.total[resource]),
    free: write(resource, left[resource]),
    bar: { promised: 0, load: sum.mine[resource], total: sum.total[resource] },
  }))
  return (
    <AmountLine
      label={t('panel.mine')}
      title={t('panel.mine')}
      note={t('panel.live', { count: live })}
      amounts={amounts}
    />
  )
}

interface GroupLineProps {
  group: string
  groups: readonly string[]
  onGroup: (group: string) => void
  summaries: readonly ResourceSummary[]
  shown: readonly Countable[]
}

/** What is promised, used and left of the machines of a resource group. */
export function GroupLine({ group, groups, onGroup, summaries, shown }: GroupLineProps) {
  const { t } = useTranslation('sessions')
  const members = summaries.filter((summary) => summary.group === group)
  const reached = members.filter((summary) => summary.online).length
  const sum = sumOf(members)
  const amounts = shown
    .filter((resource) => sum.total[resource] > 0)
    .map((resource): LineAmount => ({
      key: resource,
      name: t(`panel.${resource}`),
      held: write(resource, sum.promised[resource]),
      most: write(resource, sum.total[resource]),
      free: write(resource, sum.free[resource]),
      bar: { promised: sum.promised[resource], load: sum.load[resource], total: sum.total[resource] },
    }))
  const name = t('panel.groupOf', { group })
  const choice = (
    <Select
      size="small"
      variant="borderless"
      popupMatchSelectWidth={false}
      aria-label={t('panel.chooseGroup')}
      value={group}
      onChange={onGroup}
      options={groups.map((one) => ({ value: one, label: t('panel.groupOf', { group: one }) }))}
    />
  )
  return (
    <AmountLine
      label={name}
      title={groups.length > 1 ? choice : name}
      note={t('panel.reached', { count: members.length, reached })}
      amounts={amounts}
    />
  )
}

/** The most that one may hold of a machine, and how much of that one holds. */
export function LimitLine({ summary, named }: { summary: ResourceSummary; named: boolean }) {
  const { t } = useTranslation('sessions')
  const { limit, mine } = summary
  if (!limit) return null
  const count = (n: number) => ({ value: String(n), unit: '', text: String(n) })
  const sessions = { key: 'sessions', held: limit.sessionsHeld, most: limit.sessions ?? 0, text: count } as const
  const counted = (['cpu', 'memory', 'gpu'] as const).map((key) => ({
    key,
    held: mine[key],
    most: limit[key] ?? 0,
    text: (n: number) => write(key, n),
  }))
  const amounts = [sessions, ...counted]
    .filter((one) => one.most > 0)
    .map(({ key, held, most, text }): LineAmount => ({
      key,
      name: t(`panel.${key}`),
      held: text(held),
      most: text(most),
      free: text(Math.max(0, most - held)),
      bar: { promised: 0, load: Math.min(held, most), total: most },
    }))
  const title = named ? t('panel.limitOn', { agent: summary.agent }) : t('panel.limit')
  return <AmountLine label={title} title={title} amounts={amounts} />
}
