import { Button, Tooltip } from 'antd'
import { Plus, SquareTerminal, X } from 'lucide-react'
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { asProblem } from '@/api/client'
import { useSettings } from '@/api/hooks'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import css from './terminal.module.css'
import { ShellView } from './ShellView'
import { mergeTabs, neighbour, type Tab, tabLabel } from './tabs'
import { useMode } from './useMode'
import { useTerminals } from './useTerminals'

export interface ShellsProps {
  session: string
  running: boolean
  /** Shown while there is no shell and the session holds none. */
  otherwise: ReactNode
}

const FONT = 13

/** Several shells as tabs. All stay attached; one is shown. */
export function Shells({ session, running, otherwise }: ShellsProps) {
  const { t } = useTranslation('terminal')
  const { opened, query, open, close } = useTerminals(session, running)
  const { tabs, closed } = useTabs(query.data)
  const [params, setParams] = useSearchParams()
  const [titles, setTitles] = useState<Record<string, string>>({})
  const look = { mode: useMode(), fontSize: useSettings().data?.terminalFont || FONT }
  const wanted = params.get('shell')
  // Of a session with several kernels, the one that the address names.
  const kernel = params.get('kernel') ?? undefined
  const here = (terminal: Tab['terminal']) => !kernel || (terminal.kernel || 'main1') === kernel
  const active = tabs.find((tab) => tab.terminal.id === wanted) ?? tabs.find((tab) => here(tab.terminal)) ?? tabs[0]

  const show = useCallback(
    (id: string | null) =>
      setParams(
        (old) => {
          const next = new URLSearchParams(old)
          if (id) next.set('shell', id)
          else next.delete('shell')
          return next
        },
        { replace: true },
      ),
    [setParams],
  )
  const { mutate: openShell } = open
  const start = useCallback(() => {
    openShell(kernel, { onSuccess: (terminal) => show(terminal.id) })
  }, [openShell, show, kernel])

  // A session that holds no shell yet gets one without being asked, once.
  const started = useRef(false)
  const some = tabs.some((tab) => here(tab.terminal))
  const none = running && query.isSuccess && !query.data.some(here) && !some
  useEffect(() => {
    if (some) started.current = true
    if (!none || started.current) return
    started.current = true
    start()
  }, [none, some, start])

  const end = (tab: Tab) => {
    closed(tab.terminal.id)
    if (tab.listed && running) close.mutate(tab.terminal.id)
    if (tab === active) show(neighbour(tabs, tab.terminal.id))
  }
  if (tabs.length === 0) {
    if (!running) return <>{otherwise}</>
    const failure = open.error ?? query.error
    if (failure) return <ErrorState problem={asProblem(failure)} onRetry={open.error ? start : () => void query.refetch()} />
    if (query.isPending || open.isPending) return <div className={css.waiting} aria-busy />
    return (
      <EmptyState icon={SquareTerminal} title={t('emptyTitle')} text={t('emptyText')}>
        <Button type="primary" onClick={start}>
          {t('new')}
        </Button>
      </EmptyState>
    )
  }
  return (
    <div className={css.body}>
      <div className={css.tabs} role="group" aria-label={t('shells')}>
        {tabs.map((tab, index) => (
          <TabButton
            key={tab.terminal.id}
            label={tabLabel(tab.terminal, titles[tab.terminal.id], index)}
            number={tabs.length > 1 ? index + 1 : null}
            active={tab === active}
            onShow={() => show(tab.terminal.id)}
            onClose={() => end(tab)}
          />
        ))}
        <Tooltip title={t('new')}>
          <Button type="text" size="small" aria-label={t('new')} disabled={!running} loading={open.isPending} icon={<Plus size={15} />} onClick={start} />
        </Tooltip>
      </div>
      {open.error ? <ErrorState compact problem={asProblem(open.error)} onRetry={start} /> : null}
      {tabs.map((tab) => (
        <ShellView
          key={tab.terminal.id}
          session={session}
          terminal={tab.terminal}
          opened={opened}
          active={tab === active}
          look={look}
          canRestart={running}
          onTitle={(title) => setTitles((old) => ({ ...old, [tab.terminal.id]: title }))}
          onRestart={() => {
            start()
            end(tab)
          }}
          onClose={() => end(tab)}
        />
      ))}
    </div>
  )
}

/** The tabs, merged with the list whenever it is read. */
function useTabs(list: Parameters<typeof mergeTabs>[1] | undefined) {
  const [tabs, setTabs] = useState<Tab[]>([])
  const closedIds = useRef(new Set<string>())
  useEffect(() => {
    if (list) setTabs((old) => mergeTabs(old, list, closedIds.current))
  }, [list])
  const closed = useCallback((id: string) => {
    closedIds.current.add(id)
    setTabs((old) => old.filter((tab) => tab.terminal.id !== id))
  }, [])
  return { tabs, closed }
}

function TabButton({ label, number, active, onShow, onClose }: { label: string; number: number | null; active: boolean; onShow: () => void; onClose: () => void }) {
  const { t } = useTranslation('terminal')
  return (
    <div className={`${css.tab} ${active ? css.tabActive : ''}`} onAuxClick={(event) => event.button === 1 && onClose()}>
      <button type="button" data-tab aria-pressed={active} className={css.tabName} title={label} onClick={onShow}>
        {number === null ? null : <span className={css.number}>{number} </span>}
        {label}
      </button>
      <button type="button" className={css.tabClose} aria-label={t('closeShell', { name: label })} onClick={onClose}>
        <X size={12} aria-hidden />
      </button>
    </div>
  )
}
