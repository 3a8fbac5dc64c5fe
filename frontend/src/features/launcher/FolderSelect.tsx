import { useQueryClient } from '@tanstack/react-query'
import { App, Select } from 'antd'
import { Folder as FolderIcon, FolderPlus } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { createFolder, useFolders } from '@/api/folders'
import { keys } from '@/api/keys'
import type { Folder } from '@/api/types.gen'
import css from './launcher.module.css'

export interface FolderSelectProps {
  /** The agent on whose machine a new folder is made; undefined: none is known yet. */
  machine: string | undefined
  /** The session may land on any machine: folders of all are offered. */
  any: boolean
  /** Names of the folders that are mounted already. */
  taken: readonly string[]
  onPick: (folder: Folder) => void
}

const fresh = '+'

/** Adds a folder to what is mounted. A name that there is not yet can be created on the spot. */
export function FolderSelect({ machine, any, taken, onPick }: FolderSelectProps) {
  const { t } = useTranslation('launcher')
  const { message } = App.useApp()
  const client = useQueryClient()
  const folders = useFolders()
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const here = (folders.data ?? []).filter((f) => f.state === 'ready' && (any || f.agent === machine))
  const offered = here.filter((f) => !f.auto && !taken.includes(f.name))
  const auto = here.filter((f) => f.auto && f.agent === machine).map((f) => f.name)
  const name = text.trim()
  const creatable = machine !== undefined && /^[\w.-]{1,64}$/.test(name) && !name.startsWith('.') && !here.some((f) => f.name === name)
  const several = new Set(here.map((f) => f.agent)).size > 1
  const pick = async (key: string) => {
    setText('')
    if (key !== fresh) {
      const folder = offered.find((f) => f.id === key)
      if (folder) onPick(folder)
      return
    }
    setBusy(true)
    try {
      const made = await createFolder({ name, agent: machine ?? '' })
      await client.invalidateQueries({ queryKey: keys.folders })
      onPick(made)
    } catch (error) {
      void message.error(asProblem(error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <Select
        className={css.folderSelect ?? ''}
        aria-label={t('storage.addFolder')}
        placeholder={t(busy ? 'storage.folderBusy' : 'storage.addFolder')}
        value={null}
        loading={folders.isLoading || busy}
        showSearch={{ searchValue: text, onSearch: setText, filterOption: (typed, option) => option?.value === fresh || String(option?.title ?? '').toLowerCase().includes(typed.trim().toLowerCase()) }}
        notFoundContent={<span className={css.hint}>{t('storage.noFolder')}</span>}
        options={[
          ...offered.map((f) => ({
            value: f.id,
            title: f.name,
            label: (
              <span className={css.folderOption}>
                <FolderIcon size={14} aria-hidden />
                {f.name}
                {f.permission === 'ro' ? <em>{t('storage.readOnly')}</em> : null}
                {several ? <em>{f.agent}</em> : null}
              </span>
            ),
          })),
          ...(creatable
            ? [{ value: fresh, title: name, label: <span className={css.folderOption}><FolderPlus size={14} aria-hidden />{t('storage.newFolder', { name })}</span> }]
            : []),
        ]}
        onSelect={(key: string | null) => void pick(key ?? '')}
      />
      {auto.length > 0 ? <span className={css.hint}>{t('storage.auto', { names: auto.join(', ') })}</span> : null}
    </>
  )
}
