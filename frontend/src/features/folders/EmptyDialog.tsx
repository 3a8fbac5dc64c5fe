import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, type ApiProblem } from '@/api/client'
import { emptyDirectory } from '@/api/files'
import type { Folder } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './folders.module.css'

/** Asks before everything in a person's cache is deleted. */
export function EmptyDialog({ folder, onClose, onDone }: { folder: Folder; onClose: () => void; onDone: () => void }) {
  const { t } = useTranslation(['folders', 'common'])
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const size = folder.usage?.bytes ? formatBytes(folder.usage.bytes) : ''
  const go = async () => {
    setBusy(true)
    setProblem(null)
    try {
      await emptyDirectory({ folder: folder.id })
      onClose()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
      onDone()
    }
  }
  return (
    <Dialog
      title={t('folders:clear.title', { name: folder.name })}
      okText={size ? t('folders:clear.goSize', { size }) : t('folders:clear.go')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ danger: true, loading: busy }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      <div className={css.form}>
        <span>{t('folders:clear.text')}</span>
        {folder.usedBy.length > 0 ? (
          <span>{t('folders:clear.used', { names: folder.usedBy.map((u) => u.name).join(', ') })}</span>
        ) : null}
        {problem ? <ErrorState compact problem={problem} /> : null}
      </div>
    </Dialog>
  )
}
