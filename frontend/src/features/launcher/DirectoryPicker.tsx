import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Button, Input, Tag } from 'antd'
import { CornerLeftUp, Folder, LoaderCircle } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './launcher.module.css'

interface DirectoryPickerProps {
  agent: string
  /** There are several machines: say which one is shown. */
  named?: boolean
  /** Where to begin; empty: the person's home. */
  start: string
  onPick: (path: string) => void
  onClose: () => void
}

/** Chooses a directory of the agent's machine. */
export function DirectoryPicker({ agent, named, start, onPick, onClose }: DirectoryPickerProps) {
  const { t } = useTranslation('launcher')
  const [path, setPath] = useState(start.startsWith('/') ? start : '')
  const [typed, setTyped] = useState<string | null>(null)
  const [filter, setFilter] = useState('')
  const listing = useQuery({
    queryKey: keys.directory(agent, path),
    queryFn: ({ signal }) => call('directories', { path: { agent }, query: { path }, signal }),
    placeholderData: keepPreviousData,
    staleTime: 2000,
    retry: false,
  })
  const here = listing.data?.path ?? path
  const visit = (to: string) => {
    setPath(to)
    setTyped(null)
    setFilter('')
  }
  const inside = (name: string) => (here === '/' ? `/${name}` : `${here}/${name}`)
  const entries = (listing.data?.entries ?? []).filter((entry) =>
    entry.name.toLowerCase().includes(filter.toLowerCase()),
  )
  // Hidden directories come last; whoever wants one types its dot.
  const sorted = entries.toSorted((a, b) => Number(a.name.startsWith('.')) - Number(b.name.startsWith('.')))
  const ready = listing.isSuccess && !listing.isPlaceholderData
  return (
    <Dialog
      title={named ? t('picker.titleOn', { agent }) : t('picker.title')}
      width={560}
      okText={t('picker.pick')}
      cancelText={t('picker.cancel')}
      okButtonProps={{ disabled: !ready }}
      onOk={() => onPick(here)}
      onCancel={onClose}
    >
      <div className={css.pickerPath}>
        <Button
          aria-label={t('picker.up')}
          title={t('picker.up')}
          disabled={!listing.data?.parent}
          icon={<CornerLeftUp size={15} />}
          onClick={() => listing.data?.parent && visit(listing.data.parent)}
        />
        <Input
          className={css.mono}
          aria-label={t('picker.path')}
          value={typed ?? here}
          spellCheck={false}
          suffix={listing.isFetching ? <LoaderCircle size={14} className={css.turn} aria-hidden /> : <span />}
          onChange={(event) => setTyped(event.target.value)}
          onPressEnter={() => typed !== null && visit(typed.trim())}
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
            {sorted.map((entry) => (
              <li key={entry.name}>
                <button
                  type="button"
                  className={entry.name.startsWith('.') ? css.hiddenEntry : undefined}
                  onClick={() => visit(inside(entry.name))}
                >
                  <Folder size={15} aria-hidden />
                  <span>{entry.name}</span>
                  {entry.writable ? null : (
                    <Tag variant="filled" style={{ margin: 0 }}>
                      {t('storage.readOnly')}
                    </Tag>
                  )}
                </button>
              </li>
            ))}
            {ready && sorted.length === 0 ? (
              <li className={css.nothing}>{t(filter ? 'picker.noMatch' : 'picker.empty')}</li>
            ) : null}
          </ul>
        </>
      )}
    </Dialog>
  )
}
