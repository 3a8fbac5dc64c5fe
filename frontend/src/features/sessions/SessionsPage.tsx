import { useQueryClient } from '@tanstack/react-query'
import { Button, Flex } from 'antd'
import { Inbox, SearchX } from 'lucide-react'
import { useCallback, useEffect, useMemo, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate } from 'react-router'
import type { UsageBook } from '@/api/book'
import { asProblem } from '@/api/client'
import { useEnvironments, useFinishedBook, useIsMine, useSessionBook } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { Session } from '@/api/types.gen'
import { environmentTitle } from '@/api/environment'
import { saveText } from '@/lib/save'
import { markShown } from '@/lib/shown'
import { isLive } from '@/lib/status'
import { useStored } from '@/lib/stored'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { ListCard, ListFill, ListPage } from '@/ui/ListPage'
import { BulkBar } from './BulkBar'
import { type ColumnKey, finishedColumns, liveColumns } from './columns'
import { toCsv } from './csv'
import { useDense } from './DisplayMenu'
import { unknownIn } from './filter'
import { selectSessions, useListState, type ListState } from './listState'
import { ResourcePanels } from './ResourcePanels'
import { SessionsTable } from './SessionsTable'
import { useFailures } from './useFailures'
import css from './SessionsPage.module.css'
import { Toolbar } from './Toolbar'
import { UnknownTerm } from './UnknownTerm'

function SkeletonRows() {
  return (
    <div className={css.table} aria-busy>
      {Array.from({ length: 9 }, (_, i) => (
        <div key={i} className={css.skeletonRow}>
          <span className={css.skeleton} style={{ width: `${18 - (i % 3) * 3}%` }} />
          <span className={css.skeleton} style={{ width: `${26 - (i % 4) * 4}%` }} />
          <span className={css.skeleton} style={{ width: '14%', marginLeft: 'auto' }} />
          <span className={css.skeleton} style={{ width: '8%' }} />
        </div>
      ))}
    </div>
  )
}

interface NothingProps {
  state: ListState
  /** How many have failed since one looked. */
  failed: number
  start: ReactNode
  offer: ReactNode
  onClear: () => void
  onFailed: () => void
}

function Nothing({ state, failed, start, offer, onClear, onFailed }: NothingProps) {
  const { t } = useTranslation('sessions')
  if (state.query) {
    return (
      <EmptyState icon={SearchX} title={t('empty.filterTitle')} text={t('empty.filterText', { query: state.query })}>
        <Button onClick={onClear}>{t('filter.clear')}</Button>
      </EmptyState>
    )
  }
  if (state.type === 'inference')
    return (
      <EmptyState icon={Inbox} title={t('empty.inferenceTitle')} text={t('empty.inferenceText')}>
        <Link to="/services">
          <Button>{t('empty.toServices')}</Button>
        </Link>
      </EmptyState>
    )
  if (state.type === 'system')
    return <EmptyState icon={Inbox} title={t('empty.systemTitle')} text={t('empty.systemText')} />
  if (state.state === 'finished')
    return <EmptyState icon={Inbox} title={t('empty.finishedTitle')} text={t('empty.finishedText')} />
  return (
    <EmptyState
      icon={Inbox}
      title={t('empty.liveTitle')}
      text={failed > 0 ? t('state.failed', { count: failed }) : t('empty.liveText')}
    >
      {start}
      <Flex wrap gap={8} justify="center">
        {failed > 0 ? <Button onClick={onFailed}>{t('empty.showFailed')}</Button> : null}
        <Link to="/launcher">
          <Button type="primary">{t('empty.launch')}</Button>
        </Link>
        {offer}
      </Flex>
    </EmptyState>
  )
}

/** Live sessions and, when asked for, every finished one, as one list. */
function useSessions(state: ListState) {
  const book = useSessionBook()
  const older = useFinishedBook(state.state === 'finished')
  const sessions = useMemo(
    () => (book.data ? Object.values({ ...older.data, ...book.data }) : undefined),
    [book.data, older.data],
  )
  return {
    sessions,
    error: book.error ?? older.error,
    waiting: state.state === 'finished' && older.isPending,
    refreshing: book.isFetching || older.isFetching,
  }
}

interface SessionsPageProps {
  /** The session whose detail is open over the list. */
  openId: string | undefined
  /** What an empty list offers to start with one click. */
  start?: ReactNode
  /** Stands below the first step that an empty list offers. */
  offer?: ReactNode
}

/** The list of sessions under a summary of the machine. */
export function SessionsPage({ openId, start, offer }: SessionsPageProps) {
  const { t } = useTranslation('sessions')
  const navigate = useNavigate()
  const client = useQueryClient()
  const [state, change] = useListState()
  const { sessions, error, waiting, refreshing } = useSessions(state)
  const environments = useEnvironments().data
  const titleOf = useCallback((image: string) => environmentTitle(environments ?? [], image), [environments])
  const isMine = useIsMine()
  const { rows, counts } = useMemo(
    () => selectSessions(sessions ?? [], state, titleOf, isMine),
    [sessions, state, titleOf, isMine],
  )
  const unknown = useMemo(() => unknownIn(state.query, sessions ?? [], titleOf), [state.query, sessions, titleOf])
  const [dense] = useDense()
  const all = sessions !== undefined && !waiting
  const failed = useFailures(sessions ?? none, state.state === 'finished' && all)
  const some = all || rows.length > 0
  useEffect(() => {
    if (some) markShown('sessions')
    if (all) markShown('all-sessions')
  }, [some, all])
  const [columns, setColumns] = useStored<Partial<Record<string, ColumnKey[]>>>('columns', noColumns)
  const [picked, setPicked] = useState<string[]>([])

  const usual = state.state === 'live' ? liveColumns : finishedColumns
  const shown = columns[state.state] ?? usual
  const book = useMemo(() => new Map((sessions ?? []).map((s) => [s.id, s])), [sessions])
  // What the filter hides is not selected, whatever has changed the filter.
  const selected = useMemo(() => {
    const listed = new Set(rows.filter((row) => isLive(row.status)).map((row) => row.id))
    return picked.filter((id) => listed.has(id))
  }, [picked, rows])
  const changeList = useCallback(
    (next: Partial<ListState>) => {
      if (next.query !== undefined || next.state !== undefined || next.type !== undefined) setPicked([])
      change(next)
    },
    [change],
  )
  const refresh = () => {
    void client.invalidateQueries({ queryKey: keys.sessions })
    void client.invalidateQueries({ queryKey: keys.finished })
    void client.invalidateQueries({ queryKey: keys.machines })
    void client.invalidateQueries({ queryKey: keys.resources })
    void client.invalidateQueries({ queryKey: keys.devices })
  }
  const open = (id: string) => void navigate({ pathname: `/sessions/${id}`, search: location.search })

  return (
    <ListPage>
      <h1 className="unseen">{t('title')}</h1>
      <ResourcePanels />
      <ListCard>
        {selected.length > 0 ? (
          <BulkBar
            sessions={selected.flatMap((id) => book.get(id) ?? [])}
            isMine={isMine}
            known={[...new Set((sessions ?? []).flatMap((s) => s.tags))].sort()}
            onClear={() => setPicked([])}
          />
        ) : (
          <Toolbar
            state={state}
            onChange={changeList}
            counts={all ? counts : undefined}
            failed={failed}
            shown={shown}
            onShown={(keysShown) => setColumns({ ...columns, [state.state]: keysShown })}
            onExport={() =>
              saveText(
                `slipway-sessions-${state.state}.csv`,
                'text/csv',
                toCsv(rows, {
                  environments: environments ?? [],
                  usage: client.getQueryData<UsageBook>(keys.latestUsage) ?? {},
                }),
              )
            }
            onRefresh={refresh}
            sessions={sessions ?? none}
            titleOf={titleOf}
            refreshing={refreshing && sessions !== undefined}
          />
        )}
        {unknown && sessions ? <UnknownTerm unknown={unknown} onQuery={(query) => changeList({ query })} /> : null}
        {error && !sessions ? (
          <ListFill>
            <ErrorState problem={asProblem(error)} onRetry={refresh} />
          </ListFill>
        ) : !some ? (
          <SkeletonRows />
        ) : rows.length === 0 ? (
          <ListFill>
            <Nothing
              state={state}
              failed={failed}
              start={start}
              offer={offer}
              onClear={() => changeList({ query: '' })}
              onFailed={() => changeList({ state: 'finished', type: 'all' })}
            />
          </ListFill>
        ) : (
          <SessionsTable
            rows={rows}
            shown={shown}
            group={state.group}
            dense={dense}
            sort={state.sort}
            onSort={(sort) => change({ sort })}
            selected={selected}
            onSelect={setPicked}
            isMine={isMine}
            selectable={state.state === 'live'}
            openId={openId}
            onOpen={open}
          />
        )}
      </ListCard>
    </ListPage>
  )
}

const none: Session[] = []
const noColumns: Partial<Record<string, ColumnKey[]>> = {}
