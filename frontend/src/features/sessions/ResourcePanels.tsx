import { Button, Checkbox, Popover, Select, Tooltip } from 'antd'
import { ChevronDown, ChevronUp, SlidersHorizontal } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useAgents, useMachines, useResources, useSessionBook } from '@/api/hooks'
import type { Machine, ResourceSummary, Session } from '@/api/types.gen'
import { useStored } from '@/lib/stored'
import { GroupLine, LimitLine, MyLine } from './panelLines'
import {
  fromMachine,
  groupsOf,
  kept,
  leftForMe,
  panels,
  resources,
  sumOf,
  toggled,
  usualChoice,
  withNewer,
  type PanelChoice,
  type Resource,
} from './panels'
import { PanelStrip } from './PanelStrip'
import type { Countable } from './panelText'
import css from './SessionsPage.module.css'
import { ResourceTile } from './Tile'

interface ChooserProps {
  choice: PanelChoice
  onChoose: (choice: PanelChoice) => void
  offered: readonly Resource[]
  /** There is one machine only, which is all of its group. */
  alone: boolean
  /** What one may hold is limited on some machine. */
  limited: boolean
}

function Chooser({ choice, onChoose, offered, alone, limited }: ChooserProps) {
  const { t } = useTranslation('sessions')
  const [open, setOpen] = useState(false)
  const content = (
    <div className={css.columns}>
      <div className={css.columnsHead}>
        {t('panel.choose')}
        <Button type="link" size="small" onClick={() => onChoose(usualChoice)}>
          {t('columns.reset')}
        </Button>
      </div>
      {panels
        .filter((panel) => panel !== 'limit' || limited)
        .map((panel) => (
          <Tooltip key={panel} title={alone && panel === 'group' ? t('panel.groupAlone') : ''} placement="left">
            <Checkbox
              disabled={alone && panel === 'group'}
              checked={choice.panels.includes(panel)}
              onChange={(e) => onChoose({ ...choice, panels: toggled(panels, choice.panels, panel, e.target.checked) })}
            >
              {t(`panel.${panel}`)}
            </Checkbox>
          </Tooltip>
        ))}
      <div className={css.columnsHead}>{t('panel.resources')}</div>
      {offered.map((resource) => (
        <Checkbox
          key={resource}
          checked={choice.resources.includes(resource)}
          onChange={(e) =>
            onChoose({ ...choice, resources: toggled(resources, choice.resources, resource, e.target.checked) })
          }
        >
          {t(`panel.${resource}`)}
        </Checkbox>
      ))}
    </div>
  )
  return (
    <Popover
      content={content}
      trigger={['click']}
      placement="bottomRight"
      arrow={false}
      open={open}
      onOpenChange={setOpen}
    >
      <Tooltip title={open ? '' : t('panel.choose')}>
        <Button type="text" size="small" aria-label={t('panel.choose')} icon={<SlidersHorizontal size={14} />} />
      </Tooltip>
    </Popover>
  )
}

/** Folds the panels to one line, and back. */
function Fold({ folded, onFold }: { folded: boolean; onFold: (folded: boolean) => void }) {
  const { t } = useTranslation('sessions')
  const label = t(folded ? 'panel.unfold' : 'panel.fold')
  const Icon = folded ? ChevronDown : ChevronUp
  return (
    <Tooltip title={label}>
      <Button
        type="text"
        size="small"
        aria-label={label}
        aria-expanded={!folded}
        icon={<Icon size={15} />}
        onClick={() => onFold(!folded)}
      />
    </Tooltip>
  )
}

function Waiting() {
  return (
    <div className={css.panel} aria-hidden>
      {[0, 1, 2, 3].map((i) => (
        <div key={i} className={css.tile}>
          <span className={css.skeleton} style={{ width: '34%', margin: '3px 0 15px' }} />
          <span className={css.skeleton} style={{ width: '62%', margin: '0 0 14px' }} />
          <span className={css.skeleton} style={{ height: 6, margin: '0 0 9px' }} />
          <span className={css.skeleton} style={{ width: '80%' }} />
        </div>
      ))}
    </div>
  )
}

interface MachinePanelProps {
  machine: Machine
  machines: readonly Machine[]
  onMachine: (agent: string) => void
  summary: ResourceSummary | undefined
  sessions: Session[]
  shown: readonly Resource[]
}

/** What one machine has, has promised and really uses. */
function MachinePanel({ machine, machines, onMachine, summary, sessions, shown }: MachinePanelProps) {
  const { t } = useTranslation('sessions')
  const sum = summary?.online ? sumOf([summary]) : fromMachine(machine)
  // A machine without devices says nothing of them, nor one whose engine is silent of what that alone knows.
  const own = shown.filter((r) => r === 'disk' || r === 'sessions' || sum.total[r] > 0)
  return (
    <section className={css.machine} aria-label={t('panel.label', { host: machine.hostname })}>
      {machines.length > 1 ? (
        <div className={css.machineHead}>
          <Select
            size="small"
            variant="borderless"
            popupMatchSelectWidth={false}
            aria-label={t('panel.chooseMachine')}
            value={machine.agent}
            onChange={onMachine}
            options={machines.map((one) => ({
              value: one.agent,
              label: t(one.online ? 'panel.machineOf' : 'panel.unheard', { agent: one.agent }),
            }))}
          />
        </div>
      ) : null}
      <div
        className={`${css.panel} ${own.length > 4 ? css.many : ''}`}
        style={{ gridTemplateColumns: `repeat(${own.length}, minmax(0, 1fr))` }}
      >
        {own.map((resource) => (
          <ResourceTile key={resource} resource={resource} machine={machine} sum={sum} sessions={sessions} />
        ))}
      </div>
    </section>
  )
}

/** What is chosen of several, or else what is usual. */
const among = <T extends string>(all: readonly T[], chosen: string | undefined, usual: T): T =>
  all.find((one) => one === chosen) ?? usual

/**
 * One's own sessions, a resource group and a machine: what each has, has promised and has left. Which of that shows is
 * a person's choice.
 */
export function ResourcePanels() {
  const { t } = useTranslation('sessions')
  const machines = useMachines().data ?? []
  const agents = useAgents().data
  const summaries = useResources().data ?? []
  const book = useSessionBook().data
  const [stored, setStored] = useStored<PanelChoice>('panels', usualChoice)
  const [folded, setFolded] = useStored('panelsFolded', false)
  const choice = withNewer(stored)
  const change = (next: Partial<PanelChoice>) => setStored(kept({ ...choice, ...next }))
  const first = machines.find((m) => m.agent === agents?.find((a) => a.local)?.name) ?? machines[0]
  if (!first) return <Waiting />
  const names = machines.map((m) => m.agent)
  const machine = machines.find((m) => m.agent === among(names, choice.machine, first.agent)) ?? first
  const groups = groupsOf(summaries)
  const group = among(groups, choice.group, summaries.find((s) => s.agent === first.agent)?.group ?? '')
  const sessions = Object.values(book ?? {}).filter((s) => s.agent === machine.agent)
  const heard = summaries.filter((s) => s.online)
  const sum = heard.length > 0 ? sumOf(heard) : fromMachine(machine)
  const offered = resources.filter((r) => (r === 'gpu' || r === 'vram' ? sum.total.gpu > 0 : true))
  const shown = offered.filter((r) => choice.resources.includes(r))
  const countable = shown.filter((r): r is Countable => r !== 'disk' && r !== 'sessions')
  const alone = machines.length < 2
  const withMachine = choice.panels.includes('machine') && shown.length > 0
  const withGroup = choice.panels.includes('group') && !alone && countable.length > 0 && group !== ''
  const withMine = choice.panels.includes('mine') && countable.some((r) => sum.total[r] > 0)
  const limits = choice.panels.includes('limit') ? heard.filter((s) => s.limit) : []
  if (folded) {
    return (
      <div className={css.panels} data-tour="panels">
        <PanelStrip
          title={
            alone || heard.length === 0
              ? machine.hostname
              : t('panel.reached', { count: machines.length, reached: heard.length })
          }
          sum={sum}
          shown={countable}
          sessions={Object.values(book ?? {})}
        />
        <div className={css.corner}>
          <Fold folded onFold={setFolded} />
        </div>
      </div>
    )
  }
  return (
    <div className={css.panels} data-tour="panels">
      {withMachine ? (
        <MachinePanel
          machine={machine}
          machines={machines}
          onMachine={(agent) => change({ machine: agent })}
          summary={summaries.find((s) => s.agent === machine.agent)}
          sessions={sessions}
          shown={shown}
        />
      ) : null}
      {withGroup ? (
        <GroupLine
          group={group}
          groups={groups}
          onGroup={(one) => change({ group: one })}
          summaries={summaries}
          shown={countable}
        />
      ) : null}
      {withMine ? (
        <MyLine
          sum={sum}
          left={heard.length > 0 ? leftForMe(heard) : sum.free}
          live={heard.reduce((all, s) => all + s.live, 0)}
          shown={countable}
        />
      ) : null}
      {limits.map((summary) => (
        <LimitLine key={summary.agent} summary={summary} named={limits.length > 1} />
      ))}
      {!withMachine && !withGroup && !withMine && limits.length === 0 ? (
        <div className={css.noPanel}>{t('panel.none')}</div>
      ) : null}
      <div className={css.corner}>
        <Chooser
          choice={choice}
          onChoose={change}
          offered={offered}
          alone={alone}
          limited={summaries.some((s) => s.limit)}
        />
        <Fold folded={false} onFold={setFolded} />
      </div>
    </div>
  )
}
