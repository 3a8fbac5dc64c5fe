import { Button, Checkbox, Popover, Tooltip } from 'antd'
import { SlidersHorizontal } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useMachines, useResources, useSessionBook } from '@/api/hooks'
import type { Machine, Session } from '@/api/types.gen'
import { formatBytes, splitBytes } from '@/lib/bytes'
import { isLive, statusFamily } from '@/lib/status'
import { useStored } from '@/lib/stored'
import { ResourceBar } from '@/ui/ResourceBar'
import { LimitPanels } from './LimitPanels'
import { write, type Countable } from './panelText'
import { kept, panels, resources, sumOf, toggled, usualChoice, withNewer, type PanelChoice, type Resource, type Sum } from './panels'
import css from './SessionsPage.module.css'

interface TileProps {
  name: string
  main: string
  unit: string
  of: string
  bar?: ReactNode
  foot: ReactNode
}

function Tile({ name, main, unit, of, bar, foot }: TileProps) {
  return (
    <div className={css.tile}>
      <div className={css.tileName}>{name}</div>
      <div className={css.tileMain}>
        <span className={css.big}>{main}</span>
        <span>{unit}</span>
        <span className={css.of}>{of}</span>
      </div>
      {bar}
      <div className={css.tileFoot}>{foot}</div>
    </div>
  )
}

function Key({ soft, text }: { soft?: boolean; text: string }) {
  return (
    <span className={css.key}>
      <span className={`${css.swatch} ${soft ? css.swatchSoft : ''}`} aria-hidden />
      {text}
    </span>
  )
}

function ResourceTile({ resource, sum }: { resource: Countable; sum: Sum }) {
  const { t } = useTranslation('sessions')
  const { total, promised, load, free } = { total: sum.total[resource], promised: sum.promised[resource], load: sum.load[resource], free: sum.free[resource] }
  const left = write(resource, free)
  const soft = t('panel.promised', { amount: write(resource, promised).text })
  const busy = t('panel.busy', { amount: write(resource, load).text })
  return (
    <Tile
      name={t('panel.freeOf', { name: t(`panel.${resource}`) })}
      main={left.value}
      unit={left.unit}
      of={t('panel.of', { total: write(resource, total).text })}
      bar={<ResourceBar label={`${t(`panel.${resource}`)}: ${soft}, ${busy}`} promised={promised} load={load} total={total} />}
      foot={
        <>
          <Key soft text={soft} />
          <Key text={busy} />
        </>
      }
    />
  )
}

function DiskTile({ machine }: { machine: Machine }) {
  const { t } = useTranslation('sessions')
  const disk = splitBytes(machine.diskFree)
  const used = machine.diskTotal - machine.diskFree
  const text = t('panel.used', { amount: formatBytes(used) })
  return (
    <Tile
      name={t('panel.freeOf', { name: t('panel.disk') })}
      main={disk.value}
      unit={disk.unit}
      of={t('panel.of', { total: formatBytes(machine.diskTotal) })}
      bar={<ResourceBar label={`${t('panel.disk')}: ${text}`} promised={0} load={used} total={machine.diskTotal} />}
      foot={<Key text={text} />}
    />
  )
}

function SessionsTile({ sessions }: { sessions: Session[] }) {
  const { t } = useTranslation('sessions')
  const count = (family: string) => sessions.filter((s) => statusFamily(s.status) === family).length
  const running = count('running')
  const waiting = count('waiting')
  const starting = count('preparing')
  return (
    <Tile
      name={t('panel.sessions')}
      main={String(running)}
      unit={t('panel.running', { count: running }).replace(/^\d+\S*\s*/, '')}
      of=""
      bar={<ResourceBar label={t('panel.running', { count: running })} promised={running + starting} load={running} total={Math.max(1, running + starting + waiting)} />}
      foot={
        <>
          <span>{t('panel.starting', { count: starting })}</span>
          <span>{t('panel.waiting', { count: waiting })}</span>
        </>
      }
    />
  )
}

/** What one's own sessions hold of the whole, in one line. */
function Mine({ sum, shown, sessions }: { sum: Sum; shown: Countable[]; sessions: Session[] }) {
  const { t } = useTranslation('sessions')
  return (
    <section className={css.mine} aria-label={t('panel.mine')}>
      <span className={css.mineName}>{t('panel.mine')}</span>
      <span className={css.mineCount}>{t('panel.live', { count: sessions.filter((s) => isLive(s.status)).length })}</span>
      {shown.map((resource) => {
        const mine = write(resource, sum.mine[resource]).text
        const total = write(resource, sum.total[resource]).text
        const label = `${t(`panel.${resource}`)}: ${t('panel.mineOf', { mine, total })}`
        return (
          <div key={resource} className={css.mineTile}>
            <div className={css.mineText}>
              <span>{t(`panel.${resource}`)}</span>
              <span>
                {mine} <span className={css.dim}>/ {total}</span>
              </span>
            </div>
            <ResourceBar label={label} promised={0} load={sum.mine[resource]} total={sum.total[resource]} />
          </div>
        )
      })}
    </section>
  )
}

function Chooser({ choice, onChoose, offered }: { choice: PanelChoice; onChoose: (choice: PanelChoice) => void; offered: readonly Resource[] }) {
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
      {panels.map((panel) => (
        <Checkbox key={panel} checked={choice.panels.includes(panel)} onChange={(e) => onChoose({ ...choice, panels: toggled(panels, choice.panels, panel, e.target.checked) })}>
          {t(`panel.${panel}`)}
        </Checkbox>
      ))}
      <div className={css.columnsHead}>{t('panel.resources')}</div>
      {offered.map((resource) => (
        <Checkbox key={resource} checked={choice.resources.includes(resource)} onChange={(e) => onChoose({ ...choice, resources: toggled(resources, choice.resources, resource, e.target.checked) })}>
          {t(`panel.${resource}`)}
        </Checkbox>
      ))}
    </div>
  )
  return (
    <Popover content={content} trigger={['click']} placement="bottomRight" arrow={false} open={open} onOpenChange={setOpen}>
      <Tooltip title={open ? '' : t('panel.choose')}>
        <Button type="text" size="small" className={css.chooser ?? ''} aria-label={t('panel.choose')} icon={<SlidersHorizontal size={14} />} />
      </Tooltip>
    </Popover>
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

/** What the machine says of itself, until the summary is there. */
function fromMachine(machine: Machine): Sum {
  const amount = (cpu: number, memory: number) => ({ cpu, memory, gpu: 0, vram: 0 })
  const { cpus, memory, usedCpus, usedMemory, loadCpu, loadMemory } = machine
  return { total: amount(cpus, memory), promised: amount(usedCpus, usedMemory), mine: amount(0, 0), free: amount(cpus - usedCpus, memory - usedMemory), load: amount(loadCpu, loadMemory) }
}

/** What the machine has, has promised and really uses, and what one's own sessions hold of it. Which of that shows is a person's choice. */
export function ResourcePanels() {
  const { t } = useTranslation('sessions')
  const machine = useMachines().data?.[0]
  const summaries = useResources().data
  const book = useSessionBook().data
  const [stored, setStored] = useStored<PanelChoice>('panels', usualChoice)
  const choice = withNewer(stored)
  if (!machine) return <Waiting />
  const sessions = Object.values(book ?? {})
  const sum = summaries?.some((s) => s.online) ? sumOf(summaries) : fromMachine(machine)
  // A machine without devices says nothing of them.
  const offered = resources.filter((r) => (r === 'gpu' || r === 'vram' ? sum.total.gpu > 0 : true))
  const shown = offered.filter((r) => choice.resources.includes(r))
  const countable = shown.filter((r): r is Countable => r !== 'disk' && r !== 'sessions')
  const tile = (resource: Resource) => {
    if (resource === 'disk') return <DiskTile key={resource} machine={machine} />
    if (resource === 'sessions') return <SessionsTile key={resource} sessions={sessions} />
    return <ResourceTile key={resource} resource={resource} sum={sum} />
  }
  const withMachine = choice.panels.includes('machine') && shown.length > 0
  const withMine = choice.panels.includes('mine') && countable.length > 0
  const limits = choice.panels.includes('limit') ? (summaries ?? []).filter((s) => s.online && s.limit) : []
  return (
    <div className={css.panels}>
      {withMachine ? (
        <section className={`${css.panel} ${shown.length > 4 ? css.many : ''}`} style={{ gridTemplateColumns: `repeat(${shown.length}, minmax(0, 1fr))` }} aria-label={t('panel.label', { host: machine.hostname })}>
          {shown.map(tile)}
        </section>
      ) : null}
      {withMine ? <Mine sum={sum} shown={countable} sessions={sessions} /> : null}
      {limits.map((summary) => (
        <LimitPanels key={summary.agent} summary={summary} named={limits.length > 1} />
      ))}
      {!withMachine && !withMine && limits.length === 0 ? <div className={css.noPanel}>{t('panel.none')}</div> : null}
      <Chooser choice={choice} onChoose={(chosen) => setStored(kept(chosen))} offered={offered} />
    </div>
  )
}
