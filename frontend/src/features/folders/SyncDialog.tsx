import { Checkbox, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call } from '@/api/client'
import { useOperations } from '@/api/hooks'
import type { Folder } from '@/api/types.gen'
import { useOperationActions, useStartOperation } from '@/api/useOperation'
import { Dialog } from '@/ui/Dialog'
import { OperationView } from '@/ui/OperationView'
import css from './folders.module.css'

interface SyncDialogProps {
  folder: Folder
  /** The folders in use; one of the same name on another machine is suggested. */
  folders: readonly Folder[]
  onClose: () => void
}

/** Syncs a folder with another one, both ways. Closing the dialog does not stop it. */
export function SyncDialog({ folder, folders, onClose }: SyncDialogProps) {
  const { t } = useTranslation(['folders', 'common'])
  const others = folders.filter((f) => f.id !== folder.id && !f.missing)
  const [other, setOther] = useState(others.find((f) => f.name === folder.name)?.id)
  const [ignored, setIgnored] = useState(false)
  const [working, setWorking] = useState('')
  const start = useStartOperation()
  const operation = (useOperations().data ?? []).find((o) => o.id === working)
  const actions = useOperationActions(working)
  const go = async () => {
    const body = { this: { folder: folder.id }, that: { folder: other }, ignored }
    setWorking((await start(() => call('file-sync', { body })))?.id ?? '')
  }
  return (
    <Dialog
      width={560}
      title={t('folders:sync.title', { name: folder.name, agent: folder.agent })}
      okText={t('folders:sync.go')}
      cancelText={t('common:action.close')}
      okButtonProps={{ disabled: !other || operation !== undefined }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      {operation ? (
        <OperationView operation={operation} follow {...actions} />
      ) : (
        <div className={css.form}>
          <span className={css.text}>{t('folders:sync.text')}</span>
          <label>
            {t('folders:sync.other')}
            <Select
              value={other}
              options={others.map((f) => ({ value: f.id, label: `${f.name} @ ${f.agent}` }))}
              notFoundContent={t('folders:sync.none')}
              onChange={setOther}
            />
          </label>
          <Checkbox checked={ignored} onChange={(event) => setIgnored(event.target.checked)}>
            {t('folders:sync.ignored')}
          </Checkbox>
        </div>
      )}
    </Dialog>
  )
}
