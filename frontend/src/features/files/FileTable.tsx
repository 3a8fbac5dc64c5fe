import { Download, File, FileSymlink, Folder, Pencil, Trash2, type LucideIcon } from 'lucide-react'
import { type DragEvent, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { encodedName } from '@/api/files'
import type { FileInfo } from '@/api/types.gen'
import { formatExact, formatShortRelative } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import { Bytes } from '@/ui/Bytes'
import { type FillColumn, FillTable, named } from '@/ui/FillTable'
import css from './files.module.css'
import { visible } from './paths'
import { RenameField } from './RenameField'

interface FileTableProps {
  rows: FileInfo[]
  selected: string[]
  onSelect: (names: string[]) => void
  onOpen: (file: FileInfo) => void
  onDownload: (file: FileInfo) => void
  /** Undefined: nothing may be changed here. */
  onRename: ((file: FileInfo, name: string) => Promise<void>) | undefined
  onRemove: ((file: FileInfo) => void) | undefined
  /** Rows are being dragged; none: no longer. */
  onDrag: ((files: FileInfo[]) => void) | undefined
  /** Whether what is dragged can be dropped on a directory. */
  takes: (file: FileInfo) => boolean
  onDrop: (file: FileInfo) => void
}

type Order = { key: string; down: boolean } | null

function sorted(rows: FileInfo[], order: Order): FileInfo[] {
  if (!order) return rows
  const by = (a: FileInfo, b: FileInfo) =>
    order.key === 'size'
      ? a.size - b.size
      : order.key === 'modified'
        ? a.modified.localeCompare(b.modified)
        : a.name.localeCompare(b.name, undefined, { numeric: true })
  return rows.toSorted(
    (a, b) => Number(b.kind === 'directory') - Number(a.kind === 'directory') || (order.down ? -by(a, b) : by(a, b)),
  )
}

function Icon({ file }: { file: FileInfo }) {
  if (file.link) return <FileSymlink size={15} aria-hidden />
  return file.kind === 'directory' ? (
    <Folder size={15} aria-hidden className={css.folder} />
  ) : (
    <File size={15} aria-hidden />
  )
}

/** What can be done with a row. Many rows come and go while one scrolls, so it is a plain button. */
function Action({
  icon: Icon,
  label,
  title,
  danger,
  onClick,
}: {
  icon: LucideIcon
  label: string
  title: string
  danger?: boolean
  onClick: () => void
}) {
  return (
    <button
      type="button"
      className={`${css.action} ${danger ? css.danger : ''}`}
      aria-label={label}
      title={title}
      onClick={onClick}
    >
      <Icon size={14} aria-hidden />
    </button>
  )
}

/** The entries of a directory. Only what is seen is drawn. */
export function FileTable({
  rows,
  selected,
  onSelect,
  onOpen,
  onDownload,
  onRename,
  onRemove,
  onDrag,
  takes,
  onDrop,
}: FileTableProps) {
  const { t } = useTranslation(['files', 'common'])
  const [order, setOrder] = useState<Order>(null)
  const now = useNow()
  const [renaming, setRenaming] = useState('')
  const [over, setOver] = useState('')
  const dragOf = (file: FileInfo) => ({
    draggable: onDrag !== undefined && renaming !== encodedName(file),
    onDragStart: (event: DragEvent) => {
      event.dataTransfer.effectAllowed = 'move'
      event.dataTransfer.setData('text/plain', file.name)
      onDrag?.(
        selected.includes(encodedName(file)) ? rows.filter((row) => selected.includes(encodedName(row))) : [file],
      )
    },
    onDragEnd: () => onDrag?.([]),
    ...(file.kind === 'directory' && {
      onDragOver: () => setOver(takes(file) ? encodedName(file) : ''),
      onDragLeave: () => setOver(''),
      onDrop: () => {
        setOver('')
        if (takes(file)) onDrop(file)
      },
    }),
  })
  const shown = useMemo(() => sorted(rows, order), [rows, order])
  const sortOrder = (key: string) =>
    order?.key === key ? (order.down ? ('descend' as const) : ('ascend' as const)) : null
  const columns: FillColumn<FileInfo>[] = [
    {
      key: 'name',
      title: t('files:name'),
      width: 180,
      grow: 1,
      sorter: true,
      sortOrder: sortOrder('name'),
      ellipsis: true,
      render: (_, file) => (
        <span className={css.name}>
          <Icon file={file} />
          {onRename && renaming === encodedName(file) ? (
            <RenameField
              file={file}
              taken={rows.map((row) => row.name)}
              onRename={(name) => onRename(file, name)}
              onClose={() => setRenaming('')}
            />
          ) : file.kind === 'other' ? (
            <span className={css.dim} title={t('files:special')}>
              {visible(file.name)}
            </span>
          ) : (
            <button
              type="button"
              className={css.open}
              title={visible(file.name)}
              onClick={() => onOpen(file)}
              onKeyDown={(event) => {
                if (event.key === 'F2' && onRename) setRenaming(encodedName(file))
              }}
            >
              {visible(file.name)}
            </button>
          )}
        </span>
      ),
    },
    {
      key: 'size',
      title: t('files:size'),
      width: 100,
      align: 'right',
      sorter: true,
      sortOrder: sortOrder('size'),
      render: (_, file) => (file.kind === 'file' ? <Bytes value={file.size} /> : null),
    },
    {
      key: 'modified',
      title: t('files:modified'),
      width: 130,
      sorter: true,
      sortOrder: sortOrder('modified'),
      render: (_, file) => (
        <time dateTime={file.modified} title={formatExact(file.modified)}>
          {formatShortRelative(file.modified, now)}
        </time>
      ),
    },
    {
      key: 'actions',
      title: <span className="unseen">{t('files:actions')}</span>,
      width: 110,
      align: 'right',
      render: (_, file) => (
        <span className={css.actions}>
          {file.kind === 'other' ? null : (
            <Action
              icon={Download}
              label={t('files:downloadOf', { name: visible(file.name) })}
              title={t('files:download')}
              onClick={() => onDownload(file)}
            />
          )}
          {onRename ? (
            <Action
              icon={Pencil}
              label={t('files:renameOf', { name: visible(file.name) })}
              title={t('files:rename')}
              onClick={() => setRenaming(encodedName(file))}
            />
          ) : null}
          {onRemove ? (
            <Action
              danger
              icon={Trash2}
              label={t('files:removeOf', { name: visible(file.name) })}
              title={t('files:remove.go')}
              onClick={() => onRemove(file)}
            />
          ) : null}
        </span>
      ),
    },
  ]
  return (
    <FillTable<FileInfo>
      className={css.table}
      rowKey={encodedName}
      dataSource={shown}
      columns={columns}
      onChange={(_page, _filters, sorter) => {
        const one = Array.isArray(sorter) ? sorter[0] : sorter
        setOrder(one?.order ? { key: String(one.columnKey), down: one.order === 'descend' } : null)
      }}
      rowClassName={(file) => (over === encodedName(file) ? (css.target ?? '') : '')}
      onRow={(file) => ({ ...dragOf(file), onDoubleClick: () => onOpen(file) })}
      rowSelection={{
        columnWidth: 40,
        selectedRowKeys: selected,
        onChange: (names) => onSelect(names.map(String)),
        renderCell: (_on, file, _index, box) => named(box, t('files:select', { name: visible(file.name) })),
      }}
    />
  )
}
