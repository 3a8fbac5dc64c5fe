import { useQueryClient } from '@tanstack/react-query'
import { Button, Checkbox, Input, Select, Skeleton, Table, type TableProps, Tag } from 'antd'
import { Folder as FolderIcon, FolderSymlink, RefreshCw } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, call } from '@/api/client'
import { useFolders } from '@/api/folders'
import { keys } from '@/api/keys'
import { FOLDER_NAME } from '@/api/rules.gen'
import type { Folder } from '@/api/types.gen'
import { nameFault } from '@/lib/names'
import { Bytes } from '@/ui/Bytes'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import css from './folderTable.module.css'
import { NewName } from './NewName'

interface FolderTableProps {
  /** The machine that the session runs on; empty where it may be each of them. */
  machine: string
  /** Where a new folder is made unless another machine is chosen; empty: no machine is known yet. */
  home: string
  /** The machines on which folders can be made. */
  machines: readonly string[]
  /** There are several machines, whether they are reached or not. */
  several: boolean
  isMounted: (folder: Folder) => boolean
  onMount: (folder: Folder) => void
  onUnmount: (folder: Folder) => void
  /** Shows what is in a folder. */
  onOpen: (folder: Folder) => void
}

const pageSize = 6

/** The data folders, of which those that are ticked are mounted. */
export function FolderTable({
  machine,
  home,
  machines,
  several,
  isMounted,
  onMount,
  onUnmount,
  onOpen,
}: FolderTableProps) {
  const { t } = useTranslation('launcher')
  const client = useQueryClient()
  const query = useFolders()
  const [search, setSearch] = useState('')
  const [asking, setAsking] = useState(false)
  const [chosen, setChosen] = useState('')
  const ready = (query.data ?? []).filter((f) => f.state === 'ready')
  const makes = machines.includes(chosen) ? chosen : home
  const auto = ready.filter((f) => f.auto && f.agent === machine).map((f) => f.name)
  // What the session can have as it is comes first. What is on another machine can be copied.
  const offered = ready
    .filter((f) => !f.auto)
    .toSorted((a, b) => Number(b.agent === machine) - Number(a.agent === machine))
  const rows = offered.filter((f) => f.name.toLowerCase().includes(search.trim().toLowerCase()))
  const refresh = async () => {
    setAsking(true)
    await query.refetch()
    setAsking(false)
  }
  const make = async (name: string) => {
    const made = await call('folder-create', { body: { name, agent: makes } })
    await client.invalidateQueries({ queryKey: keys.folders })
    onMount(made)
  }
  const faultOf = (name: string) => {
    if (ready.some((f) => f.name === name && f.agent === makes)) return t('folders.taken')
    return name.startsWith('.') ? t('folders.fault') : nameFault(FOLDER_NAME, name)
  }
  return (
    <div className={css.folders}>
      <div className={css.tools}>
        <Input
          allowClear
          size="small"
          data-filter
          aria-label={t('folders.search')}
          placeholder={t('folders.search')}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <Button size="small" type="text" loading={asking} icon={<RefreshCw size={14} />} onClick={() => void refresh()}>
          {t('folders.refresh')}
        </Button>
        <NewName
          open={t('folders.new')}
          label={several ? t('folders.nameOn', { agent: makes }) : t('folders.name')}
          start={rows.length === 0 ? search.trim() : ''}
          disabled={makes === ''}
          aside={
            several ? (
              <Select
                size="small"
                aria-label={t('folders.machineOf')}
                popupMatchSelectWidth={false}
                value={makes}
                options={machines.map((name) => ({ value: name, label: t('folders.on', { agent: name }) }))}
                onChange={setChosen}
              />
            ) : null
          }
          faultOf={faultOf}
          make={make}
        />
      </div>
      {query.error && !query.data ? (
        <ErrorState compact problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Skeleton active title={false} paragraph={{ rows: 3 }} />
      ) : (
        <Table<Folder>
          className={css.table ?? ''}
          size="small"
          rowKey="id"
          dataSource={rows}
          columns={columns({ t, several, isMounted, onMount, onUnmount, onOpen, ready })}
          locale={{
            emptyText: <span className={css.none}>{t(offered.length > 0 ? 'storage.noFolder' : 'folders.empty')}</span>,
          }}
          pagination={
            rows.length > pageSize
              ? {
                  pageSize,
                  size: 'small',
                  showSizeChanger: false,
                  showTotal: (total) => t('folders.count', { count: total }),
                }
              : false
          }
          scroll={{ x: several ? 640 : 540 }}
        />
      )}
      {auto.length > 0 ? <p className={css.note}>{t('storage.auto', { names: auto.join(', ') })}</p> : null}
    </div>
  )
}

type Columns = Pick<FolderTableProps, 'isMounted' | 'onMount' | 'onUnmount' | 'onOpen'> & {
  t: ReturnType<typeof useTranslation<'launcher'>>['t']
  /** There are several machines: say whose each folder is. */
  several: boolean
  ready: readonly Folder[]
}

function columns({ t, several, isMounted, onMount, onUnmount, onOpen, ready }: Columns): TableProps<Folder>['columns'] {
  const called = (f: Folder) => (several ? `${f.name} · ${f.agent}` : f.name)
  return [
    {
      key: 'mounted',
      title: <span className="unseen">{t('folders.mounted')}</span>,
      width: 40,
      render: (_, f) => (
        <Checkbox
          aria-label={t('folders.mount', { name: called(f) })}
          checked={isMounted(f)}
          disabled={Boolean(f.missing) && !isMounted(f)}
          onChange={(event) => (event.target.checked ? onMount(f) : onUnmount(f))}
        />
      ),
    },
    {
      key: 'name',
      title: t('folders.column.name'),
      ellipsis: true,
      sorter: (a, b) => a.name.localeCompare(b.name),
      render: (_, f) => (
        <span className={css.name}>
          {f.path ? <FolderSymlink size={15} aria-hidden /> : <FolderIcon size={15} aria-hidden />}
          <button
            type="button"
            className={css.open}
            aria-label={t('folders.open', { name: called(f) })}
            title={f.path || f.name}
            disabled={f.missing}
            onClick={() => onOpen(f)}
          >
            {f.name}
          </button>
          {f.home ? (
            <Tag variant="filled" title={t('folders.homeOf', { name: f.home.name })}>
              {t('folders.home')}
            </Tag>
          ) : null}
          {f.mode === 'model' ? <Tag variant="filled">{t('folders.model')}</Tag> : null}
          {f.missing ? (
            <Tag variant="filled" color="error">
              {t('folders.missing')}
            </Tag>
          ) : null}
        </span>
      ),
    },
    ...(several
      ? [
          {
            key: 'agent',
            title: t('folders.column.agent'),
            width: 130,
            ellipsis: true,
            filters: [...new Set(ready.map((f) => f.agent))].map((agent) => ({ text: agent, value: agent })),
            onFilter: (agent: boolean | React.Key, f: Folder) => f.agent === agent,
            sorter: (a: Folder, b: Folder) => a.agent.localeCompare(b.agent),
            render: (_: unknown, f: Folder) => f.agent,
          },
        ]
      : []),
    {
      key: 'permission',
      title: t('folders.column.permission'),
      width: 110,
      render: (_, f) => t(f.permission === 'ro' ? 'storage.readOnly' : 'folders.readWrite'),
    },
    {
      key: 'size',
      title: t('folders.column.size'),
      width: 90,
      align: 'right',
      sorter: (a, b) => (a.usage?.bytes ?? 0) - (b.usage?.bytes ?? 0),
      render: (_, f) => (f.usage ? <Bytes value={f.usage.bytes} /> : '–'),
    },
    {
      key: 'created',
      title: t('folders.column.created'),
      width: 150,
      sorter: (a, b) => a.createdAt.localeCompare(b.createdAt),
      render: (_, f) => <RelativeTime at={f.createdAt} />,
    },
  ]
}
