import { Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, type ApiProblem } from '@/api/client'
import { type FilePlace, finishUpload, inside, makeDirectory, writePiece } from '@/api/files'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './files.module.css'
import { nameFault } from './paths'

export type Naming = 'directory' | 'file'

interface NameDialogProps {
  place: FilePlace
  dir: string
  naming: Naming
  taken: readonly string[]
  onClose: () => void
  onDone: () => void
}

const titles = { directory: 'newFolder', file: 'newFile' } as const

/** Asks for the name of something new. */
export function NameDialog({ place, dir, naming, taken, onClose, onDone }: NameDialogProps) {
  const { t } = useTranslation(['files', 'common'])
  const [name, setName] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const fault = name === '' ? '' : nameFault(name, taken)
  const able = name !== '' && fault === ''
  const go = async () => {
    setBusy(true)
    setProblem(null)
    const path = inside(dir, encodeURIComponent(name))
    try {
      if (naming === 'directory') await makeDirectory(place, path)
      else {
        const key = `new${Date.now().toString(36)}`
        await writePiece(place, path, key, 0, new Blob([]), () => {}, new AbortController().signal)
        await finishUpload(place, path, key, { size: 0, conflict: 'fail' })
      }
      onDone()
      onClose()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      title={t(`files:${titles[naming]}`)}
      okText={t('files:create')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ disabled: !able, loading: busy }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      <Input
        autoFocus
        aria-label={t('files:name')}
        value={name}
        status={fault ? 'error' : ''}
        spellCheck={false}
        onChange={(event) => setName(event.target.value)}
        onPressEnter={() => able && void go()}
      />
      <div className={css.fault}>{fault ? t(`files:${fault}`) : ' '}</div>
      {problem ? <ErrorState compact problem={problem} /> : null}
    </Dialog>
  )
}
