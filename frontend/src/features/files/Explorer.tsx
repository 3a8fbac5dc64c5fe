import { useQueryClient } from '@tanstack/react-query'
import { App, Button, Input, Skeleton } from 'antd'
import {
  Download,
  FilePlus,
  FolderInput,
  FolderOpen,
  FolderPlus,
  FolderUp,
  RotateCw,
  Trash2,
  Upload,
} from 'lucide-react'
import { Suspense, useMemo, useRef, useState, type DragEvent } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { contentAddress, encodedName, type FilePlace, inside, moveFile, zipAddress, placeKey } from '@/api/files'
import type { FileInfo } from '@/api/types.gen'
import { carriesFiles, comesFromOutside } from '@/lib/dropped'
import { part } from '@/lib/lazily'
import { saveUrl } from '@/lib/save'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { Crumbs } from './Crumbs'
import { FileTable } from './FileTable'
import { NameDialog, type Naming } from './NameDialog'
import { crumbsOf, visible } from './paths'
import { RemoveDialog } from './RemoveDialog'
import { UploadList } from './UploadList'
import { Archives } from './Archives'
import css from './files.module.css'
import { chosenOf, type Picked, pickedOf } from './picked'
import { useListing, useUploads } from './useFiles'
import { useMoves } from './useMoves'

const Preview = part(() => import('./Preview'), 'Preview')

export interface ExplorerProps {
  place: FilePlace
  /** What the place's root is called. */
  root: string
  /** Encoded path of the directory that is shown. */
  dir: string
  onVisit: (dir: string) => void
  readOnly: boolean
}

/** The files of a folder or a session: looked at, changed, brought and fetched. */
export function Explorer({ place, root, dir, onVisit, readOnly }: ExplorerProps) {
  const { t } = useTranslation(['files', 'common'])
  const { message } = App.useApp()
  const client = useQueryClient()
  const listing = useListing(place, dir)
  const { uploads } = useUploads()
  const [filter, setFilter] = useState('')
  const [selected, setSelected] = useState<string[]>([])
  const [naming, setNaming] = useState<Naming | null>(null)
  const [shown, setShown] = useState<FileInfo | null>(null)
  const [doomed, setDoomed] = useState<FileInfo[]>([])
  const [over, setOver] = useState(false)
  const files = useRef<HTMLInputElement>(null)
  const directory = useRef<HTMLInputElement>(null)
  const entries = useMemo(() => {
    const all = listing.data?.entries ?? []
    const wanted = filter.trim().toLowerCase()
    // Directories first, as people look for them.
    return all
      .filter((e) => e.name.toLowerCase().includes(wanted))
      .toSorted((a, b) => Number(b.kind === 'directory') - Number(a.kind === 'directory'))
  }, [listing.data, filter])
  const visit = (to: string) => {
    setFilter('')
    setSelected([])
    onVisit(to)
  }
  const refresh = () => client.invalidateQueries({ queryKey: ['files', placeKey(place)] })
  const moves = useMoves(place, () => {
    setSelected([])
    void refresh()
  })
  const pathOf = (file: FileInfo) => inside(dir, encodedName(file))
  const chosen = useMemo(() => {
    const wanted = new Set(selected)
    return wanted.size === 0 ? [] : entries.filter((e) => wanted.has(encodedName(e)))
  }, [entries, selected])
  const open = (file: FileInfo) => {
    if (file.kind === 'directory') visit(pathOf(file))
    else if (file.kind === 'file') setShown(file)
  }
  const download = (some: FileInfo[]) => {
    const [only] = some
    if (some.length === 1 && only?.kind === 'file') saveUrl(only.name, contentAddress(place, pathOf(only)))
    else
      saveUrl(
        '',
        zipAddress(place, some.map(pathOf), only && some.length === 1 ? only.name : crumbsOf(dir).at(-1)?.name || root),
      )
  }
  const bring = (picked: Picked[]) => {
    if (picked.length > 0) uploads.add(place, dir, picked)
  }
  const takes = (transfer: DataTransfer) => !readOnly && (carriesFiles(transfer) || !comesFromOutside(transfer))
  const drop = (event: DragEvent) => {
    setOver(false)
    if (!takes(event.dataTransfer)) return
    event.preventDefault()
    pickedOf(event.dataTransfer).then(
      bring,
      (error: DOMException) => void message.error(t('files:unreadable', { reason: error.message })),
    )
  }
  return (
    <div
      className={css.explorer}
      onDragOver={(event) => {
        if (!takes(event.dataTransfer)) return
        event.preventDefault()
        if (carriesFiles(event.dataTransfer)) setOver(true)
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false)
      }}
      onDrop={drop}
    >
      <div className={css.bar}>
        <Crumbs root={root} dir={dir} onVisit={visit} moves={moves} />
        <Input
          allowClear
          className={css.filter ?? ''}
          aria-label={t('files:filter')}
          placeholder={t('files:filter')}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <Button
          type="text"
          aria-label={t('files:refresh')}
          title={t('files:refresh')}
          icon={<RotateCw size={15} />}
          onClick={() => void refresh()}
        />
      </div>
      <div className={css.bar}>
        {moves.held.length > 0 ? (
          <>
            <b>{t('files:held', { count: moves.held.length })}</b>
            <Button
              type="primary"
              icon={<FolderInput size={15} />}
              disabled={!moves.able(dir)}
              onClick={() => void moves.put(dir)}
            >
              {t('files:moveHere')}
            </Button>
            <Button onClick={() => moves.hold([])}>{t('common:action.cancel')}</Button>
          </>
        ) : chosen.length > 0 ? (
          <>
            <b>{t('files:chosen', { count: chosen.length })}</b>
            <Button icon={<Download size={15} />} onClick={() => download(chosen)}>
              {t('files:download')}
            </Button>
            {readOnly ? null : (
              <>
                <Button
                  icon={<FolderInput size={15} />}
                  onClick={() => {
                    moves.hold(chosen.map(pathOf))
                    setSelected([])
                  }}
                >
                  {t('files:move')}
                </Button>
                <Button danger icon={<Trash2 size={15} />} onClick={() => setDoomed(chosen)}>
                  {t('files:remove.go')}
                </Button>
              </>
            )}
          </>
        ) : (
          <>
            {readOnly ? (
              <span className={css.note}>{t('files:readOnly')}</span>
            ) : (
              <>
                <Button type="primary" icon={<Upload size={15} />} onClick={() => files.current?.click()}>
                  {t('files:upload')}
                </Button>
                <Button icon={<FolderUp size={15} />} onClick={() => directory.current?.click()}>
                  {t('files:uploadFolder')}
                </Button>
                <Button icon={<FolderPlus size={15} />} onClick={() => setNaming('directory')}>
                  {t('files:newFolder')}
                </Button>
                <Button icon={<FilePlus size={15} />} onClick={() => setNaming('file')}>
                  {t('files:newFile')}
                </Button>
              </>
            )}
            <span className={css.count}>{listing.data ? t('files:count', { count: listing.data.total }) : null}</span>
          </>
        )}
      </div>
      <input
        ref={files}
        hidden
        type="file"
        multiple
        aria-label={t('files:upload')}
        onChange={(event) => (bring(chosenOf(event.target.files as FileList)), (event.target.value = ''))}
      />
      <input
        ref={directory}
        hidden
        type="file"
        {...{ webkitdirectory: '' }}
        aria-label={t('files:uploadFolder')}
        onChange={(event) => (bring(chosenOf(event.target.files as FileList)), (event.target.value = ''))}
      />
      <div className={css.list}>
        {listing.isError ? (
          <ErrorState problem={asProblem(listing.error)} onRetry={() => void listing.refetch()} />
        ) : listing.isPending ? (
          <Skeleton active style={{ padding: 20 }} />
        ) : entries.length === 0 ? (
          <EmptyState
            icon={FolderOpen}
            title={t(filter ? 'files:noMatch' : 'files:empty')}
            {...(filter || readOnly ? {} : { text: t('files:emptyText') })}
          />
        ) : (
          <FileTable
            rows={entries}
            selected={selected}
            onSelect={setSelected}
            onOpen={open}
            onDownload={(file) => download([file])}
            onRename={
              readOnly
                ? undefined
                : async (file, name) => {
                    await moveFile(place, pathOf(file), inside(dir, encodeURIComponent(name)))
                    await refresh()
                  }
            }
            onRemove={readOnly ? undefined : (file) => setDoomed([file])}
            onDrag={readOnly ? undefined : (some) => moves.drag(some.map(pathOf))}
            takes={(file) => moves.dragging && moves.able(pathOf(file))}
            onDrop={(file) => void moves.put(pathOf(file))}
          />
        )}
        {over ? (
          <div className={css.over}>{t('files:dropHere', { name: crumbsOf(dir).at(-1)?.name ?? root })}</div>
        ) : null}
      </div>
      <Archives />
      <UploadList place={place} />
      {doomed.length > 0 ? (
        <RemoveDialog
          place={place}
          some={doomed.map((file) => ({ path: pathOf(file), name: visible(file.name) }))}
          onClose={() => setDoomed([])}
          onDone={() => {
            setSelected([])
            void refresh()
          }}
        />
      ) : null}
      {naming ? (
        <NameDialog
          place={place}
          dir={dir}
          naming={naming}
          taken={(listing.data?.entries ?? []).map((e) => e.name)}
          onClose={() => setNaming(null)}
          onDone={() => void refresh()}
        />
      ) : null}
      <Suspense fallback={null}>
        {shown ? (
          <Preview
            place={place}
            path={pathOf(shown)}
            file={shown}
            readOnly={readOnly}
            onClose={() => setShown(null)}
            onSaved={() => void refresh()}
          />
        ) : null}
      </Suspense>
    </div>
  )
}
