import { useMutation } from '@tanstack/react-query'
import { Button, Input } from 'antd'
import { FolderPlus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { ErrorState } from '@/ui/ErrorState'
import css from './launcher.module.css'

interface NewNameProps {
  /** The button that opens the field. */
  open: string
  /** The field. */
  label: string
  /** What stands in the field when it opens. */
  start?: string
  disabled?: boolean
  /** What else is chosen for it, beside the field. */
  aside?: ReactNode
  /** What is wrong with a name, in words; empty: nothing. */
  faultOf: (name: string) => string
  /** Makes what has the name. The field closes when it is there. */
  make: (name: string) => Promise<unknown>
}

/** A button that becomes a field for the name of something new, where it is listed. */
export function NewName({ open, label, start = '', disabled = false, aside, faultOf, make }: NewNameProps) {
  const { t } = useTranslation('launcher')
  const [name, setName] = useState<string | null>(null)
  const making = useMutation({ mutationFn: make, onSuccess: () => setName(null) })
  const change = (to: string | null) => {
    setName(to)
    making.reset()
  }
  if (name === null) {
    return (
      <Button
        className={css.newDirectory ?? ''}
        type="text"
        size="small"
        disabled={disabled}
        icon={<FolderPlus size={14} />}
        onClick={() => change(start)}
      >
        {open}
      </Button>
    )
  }
  const fault = name === '' ? '' : faultOf(name)
  const able = name !== '' && fault === '' && !making.isPending
  return (
    <div className={css.newDirectory}>
      <div className={css.newDirectoryRow}>
        <Input
          autoFocus
          size="small"
          aria-label={label}
          placeholder={aside ? t('folders.column.name') : label}
          value={name}
          status={fault ? 'error' : ''}
          spellCheck={false}
          onChange={(event) => change(event.target.value)}
          onPressEnter={() => able && making.mutate(name)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return
            event.stopPropagation()
            change(null)
          }}
        />
        {aside}
        <Button size="small" disabled={!able} loading={making.isPending} onClick={() => making.mutate(name)}>
          {t('subPath.create')}
        </Button>
        <Button size="small" type="text" onClick={() => change(null)}>
          {t('picker.cancel')}
        </Button>
      </div>
      {fault ? (
        <div className={css.newDirectoryFault} role="alert">
          {fault}
        </div>
      ) : null}
      {making.isError ? <ErrorState compact problem={asProblem(making.error)} /> : null}
    </div>
  )
}
