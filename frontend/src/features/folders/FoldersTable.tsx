import { Button, Tooltip } from 'antd'
import {
  Eraser,
  Folder as FolderIcon,
  FolderSymlink,
  FolderSync,
  FolderUp,
  Pencil,
  Pin,
  Rocket,
  Trash2,
  Undo2,
} from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { CACHE_FOLDER } from '@/api/rules.gen'
import type { Folder } from '@/api/types.gen'
import { formatExact, formatRelative } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import { Bytes } from '@/ui/Bytes'
import { type FillColumn, FillTable } from '@/ui/FillTable'
import { RelativeTime } from '@/ui/Times'
import css from './folders.module.css'
import { Mark } from './Mark'
import { Removal } from './Removal'

interface FoldersTableProps {
  rows: Folder[]
  trash: boolean
  /** There are several machines: say whose each folder is. */
  several: boolean
  onOpen: (folder: Folder) => void
  onEdit: (folder: Folder) => void
  /** What it holds is opened as a project. */
  onProject: (folder: Folder) => void
  /** It is served by sftp, for large transfers with other programs. */
  onServe: (folder: Folder) => void
  /** It is made equal to another folder. */
  onSync: (folder: Folder) => void
  /** A kept home becomes an ordinary folder. */
  onKeep: (folder: Folder) => void
  onTrash: (folder: Folder) => void
  onRestore: (folder: Folder) => void
  onPurge: (folder: Folder) => void
  onStop: (folder: Folder) => void
  onEmpty: (folder: Folder) => void
}

/** The folders of one tab. */
export function FoldersTable({
  rows,
  trash,
  several,
  onOpen,
  onEdit,
  onProject,
  onServe,
  onSync,
  onKeep,
  onTrash,
  onRestore,
  onPurge,
  onStop,
  onEmpty,
}: FoldersTableProps) {
  const { t } = useTranslation('folders')
  const now = useNow()
  const columns: FillColumn<Folder>[] = [
    {
      key: 'name',
      title: t('column.name'),
      width: 200,
      grow: 3,
      ellipsis: true,
      sorter: (a, b) => a.name.localeCompare(b.name),
      render: (_, f) => (
        <span className={css.name}>
          {f.path ? <FolderSymlink size={16} aria-hidden /> : <FolderIcon size={16} aria-hidden />}
          <button
            type="button"
            className={css.open}
            title={f.name}
            disabled={f.missing || f.state === 'deleting'}
            onClick={() => onOpen(f)}
          >
            {f.name}
          </button>
          {f.auto ? <Mark text={t('auto')} title={t(f.name === CACHE_FOLDER ? 'clear.what' : 'autoText')} /> : null}
          {f.home ? <Mark text={t('home')} title={t('homeText', { name: f.home.name })} /> : null}
          {f.mode === 'model' ? <Mark text={t('mode.model')} /> : null}
          {f.path ? <Mark text={t('linked')} title={f.path} /> : null}
          {f.missing ? <Mark bad text={t('missing')} title={t('missingText')} /> : null}
          <Removal folder={f} />
        </span>
      ),
    },
    {
      key: 'permission',
      title: t('column.permission'),
      width: 110,
      render: (_, f) => t(f.permission === 'ro' ? 'permission.ro' : 'permission.rw'),
    },
    {
      key: 'usage',
      title: t('column.usage'),
      width: 100,
      align: 'right',
      sorter: (a, b) => (a.usage?.bytes ?? 0) - (b.usage?.bytes ?? 0),
      render: (_, f) =>
        f.usage ? (
          <Tooltip
            title={[
              t('files', { count: f.usage.files }),
              f.usage.partial ? t('partial') : '',
              f.counting ? t('counting') : '',
            ]
              .filter(Boolean)
              .join(' · ')}
          >
            <span className={f.counting ? css.dim : undefined}>
              <Bytes value={f.usage.bytes} />
            </span>
          </Tooltip>
        ) : (
          <span className={css.dim}>{f.counting ? t('counting') : '–'}</span>
        ),
    },
    { key: 'owner', title: t('column.owner'), width: 95, ellipsis: true, render: (_, f) => f.owner },
    ...(several
      ? [
          {
            key: 'agent',
            title: t('column.agent'),
            width: 110,
            ellipsis: true,
            render: (_: unknown, f: Folder) => f.agent,
          },
        ]
      : []),
    ...(trash
      ? [
          {
            key: 'trashed',
            title: t('column.trashed'),
            width: 150,
            render: (_: unknown, f: Folder) => (f.trashedAt ? <RelativeTime at={f.trashedAt} /> : null),
          },
        ]
      : [
          {
            key: 'usedBy',
            title: t('column.usedBy'),
            width: 146,
            grow: 2,
            ellipsis: true,
            render: (_: unknown, f: Folder) =>
              f.home?.until ? (
                <Tooltip title={formatExact(f.home.until)}>
                  <span className={css.dim}>{t('homeUntil', { when: formatRelative(f.home.until, now) })}</span>
                </Tooltip>
              ) : (
                f.usedBy.map((u, i) => (
                  <span key={u.session}>
                    {i > 0 ? ', ' : ''}
                    <Link to={`/sessions/${u.session}`}>{u.name}</Link>
                  </span>
                ))
              ),
          },
          {
            key: 'created',
            title: t('column.created'),
            width: 145,
            sorter: (a: Folder, b: Folder) => a.createdAt.localeCompare(b.createdAt),
            render: (_: unknown, f: Folder) => <RelativeTime at={f.createdAt} />,
          },
        ]),
    {
      key: 'actions',
      title: <span className="unseen">{t('column.actions')}</span>,
      width: trash ? 250 : rows.some((f) => f.home) ? 244 : 210,
      align: 'right',
      render: (_, f) =>
        trash ? (
          f.state === 'deleting' ? (
            <Button size="small" aria-label={`${t('stop')}: ${f.name}`} onClick={() => onStop(f)}>
              {t('stop')}
            </Button>
          ) : (
            <span className={css.actions}>
              <Button size="small" icon={<Undo2 size={14} />} onClick={() => onRestore(f)}>
                {t('restore')}
              </Button>
              <Button size="small" danger icon={<Trash2 size={14} />} onClick={() => onPurge(f)}>
                {t('delete')}
              </Button>
            </span>
          )
        ) : (
          <span className={css.actions}>
            {f.home ? (
              <Button
                type="text"
                size="small"
                aria-label={`${t('keepHome')}: ${f.name}`}
                title={t('keepHome')}
                icon={<Pin size={14} />}
                onClick={() => onKeep(f)}
              />
            ) : null}
            {f.name === CACHE_FOLDER && !f.path ? (
              <Button
                type="text"
                size="small"
                aria-label={`${t('clear.action')}: ${f.name}`}
                title={t('clear.action')}
                icon={<Eraser size={14} />}
                onClick={() => onEmpty(f)}
              />
            ) : null}
            {f.auto || f.mode === 'model' ? null : (
              <Button
                type="text"
                size="small"
                disabled={f.missing}
                aria-label={`${t('project.open')}: ${f.name}`}
                title={t('project.open')}
                icon={<Rocket size={14} />}
                onClick={() => onProject(f)}
              />
            )}
            <Button
              type="text"
              size="small"
              disabled={f.missing}
              aria-label={`${t('serve')}: ${f.name}`}
              title={t('serve')}
              icon={<FolderUp size={14} />}
              onClick={() => onServe(f)}
            />
            <Button
              type="text"
              size="small"
              disabled={f.missing}
              aria-label={`${t('sync.action')}: ${f.name}`}
              title={t('sync.action')}
              icon={<FolderSync size={14} />}
              onClick={() => onSync(f)}
            />
            <Button
              type="text"
              size="small"
              aria-label={`${t('edit')}: ${f.name}`}
              title={t('edit')}
              icon={<Pencil size={14} />}
              onClick={() => onEdit(f)}
            />
            <Tooltip
              title={f.usedBy.length > 0 ? t('inUse', { names: f.usedBy.map((u) => u.name).join(', ') }) : t('trash')}
            >
              <Button
                type="text"
                size="small"
                danger
                disabled={f.usedBy.length > 0}
                aria-label={`${t('trash')}: ${f.name}`}
                icon={<Trash2 size={14} />}
                onClick={() => onTrash(f)}
              />
            </Tooltip>
          </span>
        ),
    },
  ]
  return (
    <FillTable<Folder>
      rowKey="id"
      dataSource={rows}
      columns={columns}
      onRow={(f) => ({ onDoubleClick: () => (f.missing || f.state === 'deleting' ? undefined : onOpen(f)) })}
    />
  )
}
