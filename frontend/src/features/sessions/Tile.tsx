import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { Machine, Session } from '@/api/types.gen'
import { formatBytes, splitBytes } from '@/lib/bytes'
import { statusFamily } from '@/lib/status'
import { ResourceBar } from '@/ui/ResourceBar'
import { write, type Countable } from './panelText'
import type { Resource, Sum } from './panels'
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

function AmountTile({ resource, sum }: { resource: Countable; sum: Sum }) {
  const { t } = useTranslation('sessions')
  const { total, promised, load, free } = {
    total: sum.total[resource],
    promised: sum.promised[resource],
    load: sum.load[resource],
    free: sum.free[resource],
  }
  const left = write(resource, free)
  const soft = t('panel.promised', { amount: write(resource, promised).text })
  const busy = t('panel.busy', { amount: write(resource, load).text })
  return (
    <Tile
      name={t('panel.freeOf', { name: t(`panel.${resource}`) })}
      main={left.value}
      unit={left.unit}
      of={t('panel.of', { total: write(resource, total).text })}
      bar={
        <ResourceBar
          label={`${t(`panel.${resource}`)}: ${soft}, ${busy}`}
          promised={promised}
          load={load}
          total={total}
        />
      }
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
      bar={
        <ResourceBar
          label={t('panel.running', { count: running })}
          promised={running + starting}
          load={running}
          total={Math.max(1, running + starting + waiting)}
        />
      }
      foot={
        <>
          <span>{t('panel.starting', { count: starting })}</span>
          <span>{t('panel.waiting', { count: waiting })}</span>
        </>
      }
    />
  )
}

interface ResourceTileProps {
  resource: Resource
  machine: Machine
  sum: Sum
  /** Those of the machine. */
  sessions: Session[]
}

/** One resource of a machine: what is free of it, promised and really used. */
export function ResourceTile({ resource, machine, sum, sessions }: ResourceTileProps) {
  if (resource === 'disk') return <DiskTile machine={machine} />
  if (resource === 'sessions') return <SessionsTile sessions={sessions} />
  return <AmountTile resource={resource} sum={sum} />
}
