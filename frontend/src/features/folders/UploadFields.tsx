import { Input, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { FOLDER_NAME } from '@/api/rules.gen'
import type { Agent } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { nameFault } from '@/lib/names'
import css from './folders.module.css'

interface UploadFieldsProps {
  files: { count: number; bytes: number }
  name: string
  setName: (name: string) => void
  agent: string
  setAgent: (agent: string) => void
  agents: readonly Agent[]
}

/** Where the files of a directory that was dropped are uploaded to. */
export function UploadFields({ files, name, setName, agent, setAgent, agents }: UploadFieldsProps) {
  const { t } = useTranslation('folders')
  const fault = nameFault(FOLDER_NAME, name)
  return (
    <>
      <label>
        {t('openProject.uploadName')}
        <Input
          autoFocus
          value={name}
          status={fault && name ? 'error' : ''}
          maxLength={80}
          spellCheck={false}
          onChange={(event) => setName(event.target.value)}
        />
        {fault && name ? <span className={css.fault}>{fault}</span> : null}
        <span className={css.hint}>
          {t('openProject.uploads', { count: files.count, size: formatBytes(files.bytes) })}
        </span>
      </label>
      {agents.length > 1 ? (
        <label>
          {t('dialog.agent')}
          <Select value={agent} options={agents.map((a) => ({ value: a.name, label: a.name }))} onChange={setAgent} />
        </label>
      ) : null}
    </>
  )
}
