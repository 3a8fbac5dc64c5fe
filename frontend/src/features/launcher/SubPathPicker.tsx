import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Button, Input } from 'antd'
import { CornerLeftUp, Folder as FolderIcon, LoaderCircle } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { listAll, placeKey } from '@/api/files'
import { keys } from '@/api/keys'
import type { Folder } from '@/api/types.gen'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './launcher.module.css'
import { NewDirectory } from './NewDirectory'
import { subPathFault } from './mountPath'

interface SubPathPickerProps {
  folder: Folder
  /** Where to begin; empty: the folder itself. */
  start: string
  onPick: (path: string) => void
  onClose: () => void
}

/** Chooses what is mounted of a folder: a directory in it, or all of it. */
export function SubPathPicker({ folder, start, onPick, onClose }: SubPathPickerProps) {
  const { t } = useTranslation('launcher')
  const place = { folder: folder.id }
  const [path, setPath] = useState(subPathFault(start) ? '' : start.trim().replace(/\/$/, ''))
  const [filter, setFilter] = useState('')
  const listing = useQuery({
    queryKey: keys.files(placeKey(place), encodeURIComponent(path)),
    queryFn: ({ signal }) => listAll(place, encodeURIComponent(path), signal),
    placeholderData: keepPreviousData,
    staleTime: 1000,
    retry: false,
  })
  const visit = (to: string) => {
    setPath(to)
    setFilter('')
  }
  // Links, and names that no mount can be written with, lead nowhere.
  const directories = (listing.data?.entries ?? []).filter(
    (e) =>
      e.kind === 'directory' &&
      !e.link &&
      !e.encoded &&
      !subPathFault(e.name) &&
      e.name.toLowerCase().includes(filter.toLowerCase()),
  )
  const ready = listing.isSuccess && !listing.isPlaceholderData
  return (
    <Dialog
      title={t('subPath.title', { name: folder.name })}
      width={560}
      okText={t(path === '' ? 'subPath.all' : 'picker.pick')}
      cancelText={t('picker.cancel')}
      okButtonProps={{ disabled: !ready }}
      onOk={() => onPick(path)}
      onCancel={onClose}
    >
      <div className={css.pickerPath}>
        <Button
          aria-label={t('picker.up')}
          title={t('picker.up')}
          disabled={path === ''}
          icon={<CornerLeftUp size={15} />}
          onClick={() => visit(path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '')}
        />
        <Input
          className={css.mono}
          readOnly
          aria-label={t('picker.path')}
          value={path === '' ? folder.name : `${folder.name}/${path}`}
          suffix={listing.isFetching ? <LoaderCircle size={14} className={css.turn} aria-hidden /> : <span />}
        />
      </div>
      {listing.isError ? (
        <ErrorState compact problem={asProblem(listing.error)} onRetry={() => void listing.refetch()} />
      ) : (
        <>
          <Input
            allowClear
            aria-label={t('picker.filter')}
            placeholder={t('picker.filter')}
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
          />
          <ul className={css.directories} aria-busy={!ready}>
            {directories.map((entry) => (
              <li key={entry.name}>
                <button
                  type="button"
                  className={entry.name.startsWith('.') ? css.hiddenEntry : undefined}
                  onClick={() => visit(path === '' ? entry.name : `${path}/${entry.name}`)}
                >
                  <FolderIcon size={15} aria-hidden />
                  <span>{entry.name}</span>
                </button>
              </li>
            ))}
            {ready && directories.length === 0 ? (
              <li className={css.nothing}>{t(filter ? 'picker.noMatch' : 'picker.empty')}</li>
            ) : null}
          </ul>
          {folder.permission === 'ro' || !ready ? null : (
            <NewDirectory
              key={path}
              place={place}
              dir={encodeURIComponent(path)}
              taken={listing.data.entries.map((e) => e.name)}
            />
          )}
        </>
      )}
    </Dialog>
  )
}
