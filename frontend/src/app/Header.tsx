import { Button, Tag, Tooltip } from 'antd'
import { Cpu, History, Compass, Moon, Search, Sun } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useLocation, useNavigate } from 'react-router'
import { useAgents, useMachines, useSaveSettings, useSettings } from '@/api/hooks'
import type { Machine } from '@/api/types.gen'
import { DemoBadge } from '@/features/demo/DemoBadge'
import { useDemo } from '@/features/demo/useDemo'
import { LaunchButton } from '@/features/history/LaunchButton'
import { NoticesBell } from '@/features/notifications/NoticesBell'
import { formatBytes } from '@/lib/bytes'
import { useMedia } from '@/lib/useMedia'
import { ResourceBar } from '@/ui/ResourceBar'
import { recentAddress } from './addresses'
import { ConnectionMenu } from './ConnectionMenu'
import css from './Shell.module.css'

function Meter({
  name,
  used,
  total,
  promised,
  load,
  max,
}: {
  name: string
  used: string
  total: string
  promised: number
  load: number
  max: number
}) {
  const { t } = useTranslation()
  const label = `${name}: ${t('header.promised', { used, total })}`
  return (
    <Tooltip title={label}>
      <div className={css.meter}>
        <div className={css.meterText}>
          <span>{name}</span>
          <span>
            {used} / {total}
          </span>
        </div>
        <ResourceBar label={label} promised={promised} load={load} total={max} />
      </div>
    </Tooltip>
  )
}

/** The machines that are reached, as one: what is promised and used of all of them. */
function sumOf(machines: readonly Machine[]) {
  const sum = (of: (machine: Machine) => number) => machines.reduce((total, machine) => total + of(machine), 0)
  return {
    cpus: sum((m) => m.cpus),
    usedCpus: sum((m) => m.usedCpus),
    loadCpu: sum((m) => m.loadCpu),
    memory: sum((m) => m.memory),
    usedMemory: sum((m) => m.usedMemory),
    loadMemory: sum((m) => m.loadMemory),
  }
}

function MachineSummary({ machines, meters, demo }: { machines: readonly Machine[]; meters: boolean; demo: boolean }) {
  const { t } = useTranslation()
  const local = useAgents().data?.find((a) => a.local)?.name
  const first = machines.find((m) => m.agent === local) ?? machines[0]
  if (!first) return <span />
  const online = machines.filter((m) => m.online)
  const machine = sumOf(online.length > 0 ? online : [first])
  const simulated = first.engine === 'sim'
  return (
    <>
      <div className={css.machine}>
        <Cpu size={15} aria-hidden />
        <span className={css.host}>
          {machines.length > 1
            ? t(online.length < machines.length ? 'header.machinesOf' : 'header.machines', {
                count: online.length,
                total: machines.length,
              })
            : first.hostname}
        </span>
        {demo ? null : (
          <Tooltip title={simulated ? t('engine.simTitle') : first.engineVersion}>
            <Tag color={simulated ? 'warning' : undefined} variant="filled" style={{ margin: 0 }}>
              {t(`engine.${first.engine}`)}
            </Tag>
          </Tooltip>
        )}
      </div>
      {meters ? (
        <div className={css.meters}>
          <Meter
            name={t('header.cpu')}
            used={String(machine.usedCpus)}
            total={String(machine.cpus)}
            promised={machine.usedCpus}
            load={machine.loadCpu}
            max={machine.cpus}
          />
          <Meter
            name={t('header.memory')}
            used={formatBytes(machine.usedMemory)}
            total={formatBytes(machine.memory)}
            promised={machine.usedMemory}
            load={machine.loadMemory}
            max={machine.memory}
          />
        </div>
      ) : null}
    </>
  )
}

function ThemeToggle() {
  const { t } = useTranslation()
  const settings = useSettings().data
  const save = useSaveSettings()
  const systemDark = useMedia('(prefers-color-scheme: dark)')
  const dark = settings?.theme === 'dark' || (settings?.theme !== 'light' && systemDark)
  const label = t(dark ? 'header.toLight' : 'header.toDark')
  return (
    <Tooltip title={label}>
      <Button
        type="text"
        aria-label={label}
        disabled={!settings}
        icon={dark ? <Sun size={16} /> : <Moon size={16} />}
        onClick={() => settings && save.mutate({ ...settings, theme: dark ? 'light' : 'dark' })}
      />
    </Tooltip>
  )
}

interface HeaderProps {
  onNotices: () => void
  onRecents: () => void
  onPalette: () => void
  onTour: () => void
  mac: boolean
}

export function Header({ onNotices, onRecents, onPalette, onTour, mac }: HeaderProps) {
  const { t } = useTranslation(['history', 'commands', 'tour'])
  const machines = useMachines().data ?? []
  const demo = useDemo() !== undefined
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const onLauncher = pathname.startsWith('/launcher')
  // The list of sessions shows the machine at length; the terminal and the rest have it here, where an engine tells of
  // it.
  const meters = !/^\/sessions(\/[^/]*)?$/.test(pathname) && machines.some((machine) => machine.cpus > 0)
  return (
    <header className={css.header}>
      <DemoBadge />
      {demo ? (
        <Button size="small" icon={<Compass size={14} />} aria-label={t('tour:start')} onClick={onTour}>
          {t('tour:short')}
        </Button>
      ) : null}
      <MachineSummary machines={machines} meters={meters} demo={demo} />
      <div className={css.tools} style={meters ? undefined : { marginLeft: 'auto' }}>
        <ConnectionMenu />
        <Tooltip title={`${t('commands:open')} (${mac ? '⌘K' : 'Ctrl+K'})`}>
          <Button
            type="text"
            aria-label={t('commands:open')}
            aria-keyshortcuts={mac ? 'Meta+K' : 'Control+K'}
            icon={<Search size={16} />}
            onClick={onPalette}
          />
        </Tooltip>
        <NoticesBell onOpen={onNotices} />
        <ThemeToggle />
      </div>
      {onLauncher ? (
        <Button icon={<History size={15} />} onClick={onRecents}>
          {t('history:open')}
        </Button>
      ) : (
        <LaunchButton
          onNew={() => void navigate('/launcher')}
          onUse={(id) => void navigate(recentAddress(id))}
          onAll={onRecents}
        />
      )}
    </header>
  )
}
