import { Alert, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, type ApiProblem, call } from '@/api/client'

import type { Folder } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './folders.module.css'

/** Asks for the folder's name before all that is in it is deleted. */
export function PurgeDialog({ folder, onClose, onDone }: { folder: Folder; onClose: () => void; onDone: () => void }) {
  const { t } = useTranslation(['folders', 'common'])
  const [typed, setTyped] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const able = typed === folder.name
  const what = folder.usage
    ? `${t('folders:files', { count: folder.usage.files })}, ${formatBytes(folder.usage.bytes)}`
    : t('folders:purge.unknown')
  const go = async () => {
    setBusy(true)
    setProblem(null)
    try {
      await call('folder-delete', { path: { folder: folder.id } })
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
      title={t('folders:purge.title', { name: folder.name })}
      okText={t('folders:purge.go')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ danger: true, disabled: !able, loading: busy }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      <div className={css.form}>
        <Alert
          type={folder.path ? 'info' : 'warning'}
          showIcon
          title={folder.path ? t('folders:purge.textLinked', { path: folder.path }) : t('folders:purge.text', { what })}
        />
        <label>
          {t('folders:purge.type', { name: folder.name })}
          <Input
            autoFocus
            value={typed}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => setTyped(event.target.value)}
            onPressEnter={() => able && void go()}
          />
        </label>
        {problem ? <ErrorState compact problem={problem} /> : null}
      </div>
    </Dialog>
  )
}
