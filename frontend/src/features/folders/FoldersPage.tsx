import { useQueryClient } from '@tanstack/react-query'
import { App, Button, Input, Skeleton } from 'antd'
import { FolderOpen, FolderPlus, Rocket, Trash2 } from 'lucide-react'
import { useCallback, useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, call } from '@/api/client'
import { useFolders } from '@/api/folders'
import { useAgents } from '@/api/hooks'
import { keys } from '@/api/keys'
import { useProjects } from '@/api/projects'
import type { Folder, Spec } from '@/api/types.gen'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { useSessionActions } from '@/lib/actions'
import { ListBar, ListCard, ListFill, ListPage } from '@/ui/ListPage'
import { PageHeader } from '@/ui/PageHeader'
import { Tabs } from '@/ui/Tabs'
import { EmptyDialog } from './EmptyDialog'
import { FolderDialog } from './FolderDialog'
import { FoldersTable } from './FoldersTable'
import { type Dropped, type Opening, openingOf } from './opening'
import { OpenProject } from './OpenProject'
import { ProjectDialog } from './ProjectDialog'
import { PurgeDialog } from './PurgeDialog'
import { SyncDialog } from './SyncDialog'

const none: never[] = []

interface FoldersPageProps {
  /** The address of a repository that a link asks to open; empty: none. */
  project: string
  /** The id of a remembered project to open; empty: none. */
  reopen: string
  /** It is open, or cannot be. */
  onReopened: () => void
  /** A directory that was dropped, to be opened as a project; null: none. */
  dropped: Dropped | null
  /** It is open, or is left alone. */
  onDropTaken: () => void
  onOpen: (folder: Folder) => void
  onLaunch: (spec: Spec) => Promise<void>
}

/** The data folders: those in use, and those in the trash. */
export function FoldersPage(props: FoldersPageProps) {
  const { project, reopen, onReopened, dropped, onDropTaken, onOpen, onLaunch } = props
  const { t } = useTranslation(['folders', 'common'])
  const { message } = App.useApp()
  const client = useQueryClient()
  const actions = useSessionActions()
  const query = useFolders()
  const agents = useAgents().data ?? none
  const folders = query.data ?? none
  const [trash, setTrash] = useState(false)
  const [search, setSearch] = useState('')
  const [editing, setEditing] = useState<Folder | 'new' | null>(null)
  const [emptying, setEmptying] = useState<Folder | null>(null)
  const [opening, setOpening] = useState(project !== '')
  const [opened, setOpened] = useState<Opening | null>(null)
  const [syncing, setSyncing] = useState<Folder | null>(null)
  const [purging, setPurging] = useState<Folder | null>(null)
  const [active, thrown] = useMemo(
    () => [folders.filter((f) => f.state === 'ready'), folders.filter((f) => f.state !== 'ready')],
    [folders],
  )
  const rows = (trash ? thrown : active)
    .filter((f) => f.name.toLowerCase().includes(search.trim().toLowerCase()))
    .toSorted((a, b) => Number(a.auto) - Number(b.auto)) // those of every person, such as caches, come last
  const complain = (error: unknown) => {
    const problem = asProblem(error)
    void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
  }
  const projects = useProjects().data
  const openedProject = useCallback(
    (now: Opening) => {
      const known = projects?.find((p) => p.folder === now.folder.id && (p.path ?? '') === now.dir)
      setOpening(false)
      onDropTaken()
      setOpened(known ? { ...openingOf(known, now.folder), ...now } : now)
      void client.invalidateQueries({ queryKey: keys.folders })
    },
    [client, projects, onDropTaken],
  )
  const loaded = query.data !== undefined && projects !== undefined
  useEffect(() => {
    if (!reopen || !loaded) return
    const known = projects.find((p) => p.id === reopen)
    const folder = active.find((f) => f.id === known?.folder)
    if (known && folder) openedProject(openingOf(known, folder))
    else setOpening(true) // which says why
    onReopened()
  }, [reopen, loaded, projects, active, openedProject, onReopened])
  const refresh = () => client.invalidateQueries({ queryKey: keys.folders })
  const serve = async (folder: Folder) => {
    try {
      const session = await call('folder-sftp', { path: { folder: folder.id } })
      actions.openSSH(session.id)
    } catch (error) {
      complain(error)
    }
  }
  const change = async (
    folder: Folder,
    call: (id: string) => Promise<Folder>,
    done: 'keptHome' | 'trashed' | 'restored' | 'restoredPartly' | 'stopped',
  ) => {
    try {
      await call(folder.id)
      void message.success(t(`folders:${done}`, { name: folder.name }))
    } catch (error) {
      complain(error)
    }
    await refresh()
  }
  const add = (
    <Button type="primary" icon={<FolderPlus size={15} />} onClick={() => setEditing('new')}>
      {t('folders:new')}
    </Button>
  )
  return (
    <ListPage>
      <PageHeader
        title={t('folders:title')}
        note={query.data ? t('folders:count', { count: active.length }) : undefined}
      >
        <Button icon={<Rocket size={15} />} onClick={() => setOpening(true)}>
          {t('folders:openProject.button')}
        </Button>
        {add}
      </PageHeader>
      <ListCard>
        <ListBar>
          <Tabs
            label={t('folders:tabs')}
            tabs={[
              { key: 'active', label: t('folders:tab.active'), count: query.data && active.length },
              { key: 'trash', label: t('folders:tab.trash'), count: query.data && thrown.length },
            ]}
            value={trash ? 'trash' : 'active'}
            onChange={(tab) => setTrash(tab === 'trash')}
          />
          <Input
            allowClear
            data-filter
            aria-label={t('folders:search')}
            placeholder={t('folders:search')}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </ListBar>
        {query.error && !query.data ? (
          <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
        ) : query.isPending ? (
          <Skeleton active style={{ padding: 20 }} />
        ) : rows.length === 0 ? (
          <ListFill>
            {search ? (
              <EmptyState icon={FolderOpen} title={t('folders:noMatch')} />
            ) : trash ? (
              <EmptyState icon={Trash2} title={t('folders:emptyTrash')} />
            ) : (
              <EmptyState icon={FolderOpen} title={t('folders:empty')} text={t('folders:emptyText')}>
                {add}
              </EmptyState>
            )}
          </ListFill>
        ) : (
          <FoldersTable
            rows={rows}
            trash={trash}
            several={agents.length > 1}
            onOpen={onOpen}
            onEdit={setEditing}
            onProject={(folder) => openedProject({ folder, dir: '' })}
            onServe={(f) => void serve(f)}
            onSync={setSyncing}
            onKeep={(f) =>
              void change(f, (folder) => call('folder-update', { path: { folder }, body: { keep: true } }), 'keptHome')
            }
            onTrash={(f) => void change(f, (folder) => call('folder-trash', { path: { folder } }), 'trashed')}
            onRestore={(f) =>
              void change(
                f,
                (folder) => call('folder-restore', { path: { folder } }),
                f.removed ? 'restoredPartly' : 'restored',
              )
            }
            onPurge={setPurging}
            onEmpty={setEmptying}
            onStop={(f) => void change(f, (folder) => call('folder-delete-stop', { path: { folder } }), 'stopped')}
          />
        )}
      </ListCard>
      {editing ? (
        <FolderDialog
          folder={editing === 'new' ? undefined : editing}
          agents={agents}
          onClose={() => setEditing(null)}
          onDone={() => void refresh()}
        />
      ) : null}
      {emptying ? (
        <EmptyDialog folder={emptying} onClose={() => setEmptying(null)} onDone={() => void refresh()} />
      ) : null}
      {(opening || dropped) && agents.length > 0 ? (
        <OpenProject
          key={dropped ? ('path' in dropped ? dropped.path : dropped.name) : ''}
          address={project}
          dropped={dropped}
          agents={agents}
          folders={active}
          onClose={() => (setOpening(false), onDropTaken())}
          onOpened={openedProject}
        />
      ) : null}
      {opened ? (
        <ProjectDialog
          key={`${opened.folder.id}/${opened.dir}`}
          opening={opened}
          onClose={() => setOpened(null)}
          onLaunch={onLaunch}
        />
      ) : null}
      {syncing ? <SyncDialog folder={syncing} folders={active} onClose={() => setSyncing(null)} /> : null}
      {purging ? <PurgeDialog folder={purging} onClose={() => setPurging(null)} onDone={() => void refresh()} /> : null}
    </ListPage>
  )
}
