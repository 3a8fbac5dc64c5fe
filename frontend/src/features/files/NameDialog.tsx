import { Input, Modal } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, type ApiProblem } from '@/api/client'
import { encodedName, type FilePlace, finishUpload, inside, makeDirectory, moveFile, writePiece } from '@/api/files'
import type { FileInfo } from '@/api/types.gen'
import { ErrorState } from '@/ui/ErrorState'
import css from './files.module.css'
import { nameFault } from './paths'

export type Naming = { what: 'directory' | 'file' } | { what: 'rename'; file: FileInfo }

export interface NameDialogProps {
  place: FilePlace
  dir: string
  naming: Naming
  taken: readonly string[]
  onClose: () => void
  onDone: () => void
}

const titles = { directory: 'newFolder', file: 'newFile', rename: 'rename' } as const

/** Asks for the name of something new, or another name. */
export function NameDialog({ place, dir, naming, taken, onClose, onDone }: NameDialogProps) {
  const { t } = useTranslation(['files', 'common'])
  const old = naming.what === 'rename' ? naming.file.name : ''
  const [name, setName] = useState(old)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const fault = name === old ? '' : nameFault(name, taken)
  const able = name !== '' && name !== old && fault === ''
  const go = async () => {
    setBusy(true)
    setProblem(null)
    const path = inside(dir, encodeURIComponent(name))
    try {
      if (naming.what === 'directory') await makeDirectory(place, path)
      else if (naming.what === 'rename') await moveFile(place, inside(dir, encodedName(naming.file)), path)
      else {
        const key = `new${Date.now().toString(36)}`
        await writePiece(place, path, key, 0, new Blob([]), () => {}, new AbortController().signal)
        await finishUpload(place, path, key, 0, 'fail')
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
    <Modal open title={t(`files:${titles[naming.what]}`)} okText={t(naming.what === 'rename' ? 'files:rename' : 'files:create')} cancelText={t('common:action.cancel')} okButtonProps={{ disabled: !able, loading: busy }} onOk={() => void go()} onCancel={onClose}>
      <Input autoFocus aria-label={t('files:name')} value={name} status={fault && name !== '' ? 'error' : ''} spellCheck={false} onChange={(event) => setName(event.target.value)} onPressEnter={() => able && void go()} />
      <div className={css.fault}>{fault && name !== '' ? t(`files:${fault}`) : ' '}</div>
      {problem ? <ErrorState compact problem={problem} /> : null}
    </Modal>
  )
}
