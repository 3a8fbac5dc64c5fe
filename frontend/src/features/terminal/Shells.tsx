import { Button } from 'antd'
import { SquareTerminal } from 'lucide-react'
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { asProblem } from '@/api/client'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { Dividers } from './Dividers'
import { beside, boxesOf, shellsOf, type Side } from './layout'
import css from './terminal.module.css'
import { SearchAll } from './SearchAll'
import { ShellView } from './ShellView'
import { TabBar } from './TabBar'
import { neighbour, type Tab, tabLabel } from './tabs'
import { useLayouts } from './useLayouts'
import { useLook } from './useLook'
import { useTabs } from './useTabs'
import { useTerminals } from './useTerminals'

interface ShellsProps {
  session: string
  running: boolean
  /** Shown while there is no shell and the session holds none. */
  otherwise: ReactNode
}

/** Several shells as tabs, and as panes of a tab. All stay attached; those of one tab are shown. */
export function Shells({ session, running, otherwise }: ShellsProps) {
  const { t } = useTranslation('terminal')
  const { opened, query, open, close } = useTerminals(session, running)
  const { tabs, closed } = useTabs(query.data)
  const [params, setParams] = useSearchParams()
  const [titles, setTitles] = useState<Record<string, string>>({})
  const [rung, setRung] = useState<ReadonlySet<string>>(new Set())
  const [find, setFind] = useState<{ shell: string; text: string } | null>(null)
  const look = useLook()
  const ids = useMemo(() => tabs.map((tab) => tab.terminal.id), [tabs])
  const { tabs: layouts, splitAt, move } = useLayouts(session, ids)
  const wanted = params.get('shell')
  // Of a session with several kernels, the one that the address names.
  const kernel = params.get('kernel') ?? undefined
  const here = (terminal: Tab['terminal']) => !kernel || (terminal.kernel || 'main1') === kernel
  const active = tabs.find((tab) => tab.terminal.id === wanted) ?? tabs.find((tab) => here(tab.terminal)) ?? tabs[0]
  const shown = layouts.find((layout) => active && shellsOf(layout).includes(active.terminal.id))

  const show = useCallback(
    (id: string | null) => {
      setRung((old) => (id && old.has(id) ? new Set([...old].filter((other) => other !== id)) : old))
      setParams(
        (old) => {
          const next = new URLSearchParams(old)
          if (id) next.set('shell', id)
          else next.delete('shell')
          return next
        },
        { replace: true },
      )
    },
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

  const splitShell = (at: Tab, side: Side) =>
    openShell(at.terminal.kernel || undefined, {
      onSuccess: (terminal) => {
        splitAt(at.terminal.id, side, terminal.id)
        show(terminal.id)
      },
    })
  const end = (ended: Tab[]) => {
    for (const tab of ended) {
      closed(tab.terminal.id)
      if (tab.listed && running) close.mutate(tab.terminal.id)
    }
    if (!active || !ended.includes(active)) return
    const id = active.terminal.id
    const pane = shown ? shellsOf(shown).find((other) => !ended.some((tab) => tab.terminal.id === other)) : undefined
    show(
      pane ??
        neighbour(
          tabs.filter((tab) => tab === active || !ended.includes(tab)),
          id,
        ),
    )
  }
  if (tabs.length === 0) {
    if (!running) return <>{otherwise}</>
    const failure = open.error ?? query.error
    if (failure)
      return <ErrorState problem={asProblem(failure)} onRetry={open.error ? start : () => void query.refetch()} />
    if (query.isPending || open.isPending) return <div className={css.waiting} aria-busy />
    return (
      <EmptyState icon={SquareTerminal} title={t('emptyTitle')} text={t('emptyText')}>
        <Button type="primary" onClick={start}>
          {t('new')}
        </Button>
      </EmptyState>
    )
  }
  const items = layouts.map((layout, index) => {
    const shells = shellsOf(layout)
    const first = tabs.find((tab) => tab.terminal.id === (layout === shown ? active?.terminal.id : shells[0]))
    return {
      id: shells[0] ?? '',
      panes: shells.length,
      active: layout === shown,
      rung: shells.some((id) => rung.has(id)),
      label: first ? tabLabel(first.terminal, titles[first.terminal.id], index) : '',
    }
  })
  const of = (id: string) =>
    tabs.filter((tab) =>
      layouts.some((layout) => shellsOf(layout).includes(id) && shellsOf(layout).includes(tab.terminal.id)),
    )
  const boxes = shown ? boxesOf(shown) : new Map<string, never>()
  return (
    <div className={css.body}>
      <TabBar
        items={items}
        running={running}
        opening={open.isPending}
        onShow={show}
        onClose={(id) => end(of(id))}
        onNew={start}
        onSplit={(side) => active && splitShell(active, side)}
        search={
          <SearchAll
            session={session}
            running={running}
            labelOf={(id) => {
              const index = tabs.findIndex((tab) => tab.terminal.id === id)
              const tab = tabs[index]
              return tab ? tabLabel(tab.terminal, titles[id], index) : id
            }}
            onShow={(shell, text) => {
              setFind({ shell, text })
              show(shell)
            }}
          />
        }
      />
      {open.error ? <ErrorState compact problem={asProblem(open.error)} onRetry={start} /> : null}
      <div className={css.panes} data-panes={boxes.size}>
        {tabs.map((tab) => (
          <ShellView
            key={tab.terminal.id}
            session={session}
            terminal={tab.terminal}
            opened={opened}
            active={tab === active}
            box={boxes.get(tab.terminal.id) ?? null}
            look={look}
            find={find?.shell === tab.terminal.id ? find : null}
            canRestart={running}
            onActive={() => tab !== active && show(tab.terminal.id)}
            onTitle={(title) => setTitles((old) => ({ ...old, [tab.terminal.id]: title }))}
            onBell={() => tab !== active && setRung((old) => new Set([...old, tab.terminal.id]))}
            onSplit={(side) => running && splitShell(tab, side)}
            onBeside={(direction) => shown && show(beside(shown, tab.terminal.id, direction) ?? tab.terminal.id)}
            onRestart={() => {
              start()
              end([tab])
            }}
            onClose={() => end([tab])}
          />
        ))}
        {shown ? <Dividers layout={shown} onMove={(path, ratio) => move(shown, path, ratio)} /> : null}
      </div>
    </div>
  )
}
