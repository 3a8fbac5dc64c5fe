import { Input, Radio, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, type ApiProblem, call } from '@/api/client'
import { FOLDER_NAME } from '@/api/rules.gen'
import type { Agent, Folder } from '@/api/types.gen'
import { nameFault } from '@/lib/names'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './folders.module.css'

interface FolderDialogProps {
  /** Undefined: a new one is made. */
  folder: Folder | undefined
  agents: readonly Agent[]
  onClose: () => void
  onDone: () => void
}

/** Makes a folder, or changes one. */
export function FolderDialog({ folder, agents, onClose, onDone }: FolderDialogProps) {
  const { t } = useTranslation(['folders', 'common'])
  const [name, setName] = useState(folder?.name ?? '')
  const [permission, setPermission] = useState(folder?.permission ?? 'rw')
  const [mode, setMode] = useState(folder?.mode ?? 'general')
  const [agent, setAgent] = useState(agents.find((a) => a.local)?.name ?? '')
  const [linked, setLinked] = useState(false)
  const [path, setPath] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const fault = nameFault(FOLDER_NAME, name)
  const wrong = name !== '' && fault !== ''
  const able = fault === '' && (!linked || path.trim().startsWith('/'))
  const go = async () => {
    setBusy(true)
    setProblem(null)
    try {
      if (folder)
        await call('folder-update', {
          path: { folder: folder.id },
          body: {
            ...(name === folder.name ? {} : { name }),
            ...(permission === folder.permission ? {} : { permission }),
            ...(mode === folder.mode ? {} : { mode }),
          },
        })
      else
        await call('folder-create', {
          body: { name, permission, mode, agent, ...(linked ? { path: path.trim() } : {}) },
        })
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
      title={folder ? t('folders:dialog.edit', { name: folder.name }) : t('folders:dialog.create')}
      okText={t(folder ? 'folders:dialog.editGo' : 'folders:dialog.createGo')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ disabled: !able, loading: busy }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      <div className={css.form}>
        <label>
          {t('folders:dialog.name')}
          <Input
            autoFocus
            value={name}
            status={wrong ? 'error' : ''}
            maxLength={80}
            spellCheck={false}
            onChange={(event) => setName(event.target.value)}
            onPressEnter={() => able && void go()}
          />
          <span className={wrong ? css.fault : css.hint}>{wrong ? fault : t('folders:dialog.nameHint')}</span>
        </label>
        {!folder && agents.length > 1 ? (
          <label>
            {t('folders:dialog.agent')}
            <Select value={agent} options={agents.map((a) => ({ value: a.name, label: a.name }))} onChange={setAgent} />
          </label>
        ) : null}
        {folder ? null : (
          <fieldset className={css.choice}>
            <legend>{t('folders:dialog.where')}</legend>
            <Radio.Group value={linked} onChange={(event) => setLinked(Boolean(event.target.value))}>
              <Radio value={false}>{t('folders:dialog.managed')}</Radio>
              <Radio value={true}>{t('folders:dialog.link')}</Radio>
            </Radio.Group>
            <span className={css.hint}>{t(linked ? 'folders:dialog.linkedText' : 'folders:dialog.managedText')}</span>
            {linked ? (
              <Input
                aria-label={t('folders:dialog.path')}
                placeholder="/data/images"
                value={path}
                spellCheck={false}
                onChange={(event) => setPath(event.target.value)}
              />
            ) : null}
          </fieldset>
        )}
        <fieldset className={css.choice}>
          <legend>{t('folders:dialog.permission')}</legend>
          <Radio.Group value={permission} onChange={(event) => setPermission(String(event.target.value))}>
            <Radio value="rw">{t('folders:permission.rw')}</Radio>
            <Radio value="ro">{t('folders:permission.ro')}</Radio>
          </Radio.Group>
        </fieldset>
        <fieldset className={css.choice}>
          <legend>{t('folders:dialog.mode')}</legend>
          <Radio.Group value={mode} onChange={(event) => setMode(String(event.target.value))}>
            <Radio value="general">{t('folders:mode.general')}</Radio>
            <Radio value="model">{t('folders:mode.model')}</Radio>
          </Radio.Group>
        </fieldset>
        {problem ? <ErrorState compact problem={problem} /> : null}
      </div>
    </Dialog>
  )
}
