import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Button, Input } from 'antd'
import { FolderPlus } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { type FilePlace, inside, makeDirectory, placeKey } from '@/api/files'
import { ErrorState } from '@/ui/ErrorState'
import css from './launcher.module.css'
import { subPathFault } from './validateMounts'

export interface NewDirectoryProps {
  place: FilePlace
  /** Encoded path of the directory in which the new one is made. */
  dir: string
  taken: readonly string[]
}

/** Makes a directory among those that are listed, which stay as they are. */
export function NewDirectory({ place, dir, taken }: NewDirectoryProps) {
  const { t } = useTranslation('launcher')
  const client = useQueryClient()
  const [name, setName] = useState<string | null>(null)
  const make = useMutation({
    mutationFn: (wanted: string) => makeDirectory(place, inside(dir, encodeURIComponent(wanted))),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['files', placeKey(place)] })
      setName(null)
    },
  })
  const change = (to: string | null) => {
    setName(to)
    make.reset()
  }
  if (name === null) {
    return (
      <Button className={css.newDirectory ?? ''} type="text" size="small" icon={<FolderPlus size={14} />} onClick={() => change('')}>
        {t('subPath.new')}
      </Button>
    )
  }
  const fault = taken.includes(name) ? 'taken' : name !== '' && (name.includes('/') || name !== name.trim() || subPathFault(name)) ? 'fault' : ''
  const able = name !== '' && fault === '' && !make.isPending
  return (
    <div className={css.newDirectory}>
      <div className={css.newDirectoryRow}>
        <Input
          autoFocus
          size="small"
          aria-label={t('subPath.name')}
          placeholder={t('subPath.name')}
          value={name}
          status={fault ? 'error' : ''}
          spellCheck={false}
          onChange={(event) => change(event.target.value)}
          onPressEnter={() => able && make.mutate(name)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return
            event.stopPropagation()
            change(null)
          }}
        />
        <Button size="small" disabled={!able} loading={make.isPending} onClick={() => make.mutate(name)}>
          {t('subPath.create')}
        </Button>
        <Button size="small" type="text" onClick={() => change(null)}>
          {t('picker.cancel')}
        </Button>
      </div>
      {fault ? (
        <div className={css.newDirectoryFault} role="alert">
          {t(`subPath.${fault}`)}
        </div>
      ) : null}
      {make.isError ? <ErrorState compact problem={asProblem(make.error)} /> : null}
    </div>
  )
}
