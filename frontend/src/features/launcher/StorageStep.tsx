import { Button, Checkbox, Input } from 'antd'
import { Folder, FolderOpen, FolderPlus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useFolders } from '@/api/folders'
import css from './launcher.module.css'
import { Card } from './Card'
import { DirectoryPicker } from './DirectoryPicker'
import { FolderSelect } from './FolderSelect'
import { SubPathPicker } from './SubPathPicker'
import type { MountRow } from './draft'
import { IssueLine } from './Field'
import type { StepProps } from './StepProps'
import { useMachinesFor } from './useMachinesFor'
import { machineFor } from './validate'
import { mountTarget } from './validateMounts'

export function StorageStep({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const machines = useMachinesFor(draft.group).machines ?? []
  const machine = machineFor(draft.agent, machines)
  // A directory is one machine's: picking it there chooses that machine.
  const several = machines.length > 1
  // The place a picked directory goes to: a row, or a new one at the end.
  const [picking, setPicking] = useState<number | null>(null)
  const folders = useFolders().data ?? []
  const folderOf = (mount: MountRow) => folders.find((f) => f.name === mount.folder && f.state === 'ready' && f.agent === machine?.agent)
  const [inside, setInside] = useState<number | null>(null)
  const mounted = inside === null ? undefined : draft.mounts[inside]
  const within = mounted && folderOf(mounted)
  const set = (index: number, row: Partial<MountRow>) =>
    change((old) => ({ ...old, mounts: old.mounts.map((m, i) => (i === index ? { ...m, ...row } : m)) }))
  const picked = (source: string) => {
    const index = picking
    setPicking(null)
    if (index === null) return
    if (several && machine && draft.agent === '') change({ agent: machine.agent, group: '' })
    if (index < draft.mounts.length) set(index, { source })
    else change((old) => ({ ...old, mounts: [...old.mounts, { source, target: '', readOnly: false }] }))
  }
  return (
    <Card title={t('storage.title')} text={t('storage.text')}>
      {draft.mounts.length > 0 ? (
        <div className={css.mountHead} aria-hidden>
          <span>{t('storage.source')}</span>
          <span>{t('storage.target')}</span>
          <span>{t('storage.readOnly')}</span>
        </div>
      ) : (
        <p className={css.nothing}>{t('storage.none')}</p>
      )}
      {draft.mounts.map((mount, index) => (
        <MountLine
          key={index}
          mount={mount}
          index={index}
          issues={issues}
          onBrowse={mount.folder === undefined ? () => setPicking(index) : folderOf(mount) ? () => setInside(index) : undefined}
          onChange={(row) => set(index, row)}
          onRemove={() => change((old) => ({ ...old, mounts: old.mounts.filter((_, i) => i !== index) }))}
        />
      ))}
      <div className={css.buttons}>
        <FolderSelect
          machine={machine?.agent}
          any={draft.agent === ''}
          taken={draft.mounts.map((m) => m.folder ?? '')}
          onPick={(folder) => {
            if (several && draft.agent === '') change({ agent: folder.agent, group: '' })
            change((old) => ({ ...old, mounts: [...old.mounts, { source: '', folder: folder.name, path: '', target: '', readOnly: folder.permission === 'ro' }] }))
          }}
        />
        <Button icon={<FolderPlus size={15} />} disabled={!machine} onClick={() => setPicking(draft.mounts.length)}>
          {t('storage.add')}
        </Button>
        <Button type="text" onClick={() => change((old) => ({ ...old, mounts: [...old.mounts, { source: '', target: '', readOnly: false }] }))}>
          {t('storage.addByHand')}
        </Button>
      </div>
      {picking !== null && machine ? (
        <DirectoryPicker agent={machine.agent} named={several} start={draft.mounts[picking]?.source ?? ''} onPick={picked} onClose={() => setPicking(null)} />
      ) : null}
      {inside !== null && within ? (
        <SubPathPicker
          folder={within}
          start={mounted?.path ?? ''}
          onPick={(path) => {
            set(inside, { path })
            setInside(null)
          }}
          onClose={() => setInside(null)}
        />
      ) : null}
    </Card>
  )
}

interface MountLineProps {
  mount: MountRow
  index: number
  issues: StepProps['issues']
  /** Undefined: there is nothing to choose from. */
  onBrowse: (() => void) | undefined
  onChange: (row: Partial<MountRow>) => void
  onRemove: () => void
}

function MountLine({ mount, index, issues, onBrowse, onChange, onRemove }: MountLineProps) {
  const { t } = useTranslation('launcher')
  const sourceIssue = issues.at(`mounts[${index}].source`) ?? issues.at(`mounts[${index}].path`) ?? issues.at(`mounts[${index}].folder`)
  const targetIssue = issues.at(`mounts[${index}].target`) ?? issues.at(`mounts[${index}]`)
  const target = mountTarget(mount)
  const browseText = t(mount.folder === undefined ? 'storage.browse' : 'subPath.browse', { number: index + 1 })
  const browse = onBrowse ? (
    <button type="button" className={css.bare} aria-label={browseText} title={browseText} onClick={onBrowse}>
      <FolderOpen size={15} aria-hidden />
    </button>
  ) : (
    <span />
  )
  return (
    <div className={css.row}>
      <div className={css.mount}>
        {mount.folder === undefined ? (
          <Input
            className={css.mono}
            aria-label={t('storage.sourceOf', { number: index + 1 })}
            status={sourceIssue?.severity ?? ''}
            value={mount.source}
            placeholder="/data/images"
            spellCheck={false}
            onChange={(event) => onChange({ source: event.target.value })}
            suffix={browse}
          />
        ) : (
          <div className={css.folderRow}>
            <span className={css.folderName} title={mount.folder}>
              <Folder size={15} aria-hidden />
              {mount.folder}
            </span>
            <Input
              className={css.mono}
              aria-label={t('storage.subPathOf', { number: index + 1 })}
              status={sourceIssue?.severity ?? ''}
              value={mount.path ?? ''}
              placeholder={t('storage.subPath')}
              spellCheck={false}
              onChange={(event) => onChange({ path: event.target.value })}
              suffix={browse}
            />
          </div>
        )}
        <Input
          className={css.mono}
          aria-label={t('storage.targetOf', { number: index + 1 })}
          status={targetIssue?.severity ?? ''}
          value={mount.target}
          placeholder={mount.folder === undefined && mount.source.trim() === '' ? t('storage.targetPlaceholder') : target}
          spellCheck={false}
          onChange={(event) => onChange({ target: event.target.value })}
        />
        <Checkbox checked={mount.readOnly} aria-label={t('storage.readOnlyOf', { number: index + 1 })} onChange={(event) => onChange({ readOnly: event.target.checked })}>
          {t('storage.readOnly')}
        </Checkbox>
        <Button type="text" aria-label={t('storage.remove', { number: index + 1 })} icon={<Trash2 size={15} />} onClick={onRemove} />
      </div>
      {sourceIssue ? <IssueLine issue={sourceIssue} /> : null}
      {targetIssue ? (
        <IssueLine issue={targetIssue} />
      ) : (mount.folder ?? mount.source.trim()) !== '' && mount.target.trim() !== '' && mount.target.trim() !== target ? (
        <div className={css.hint}>{t('storage.appears', { target })}</div>
      ) : null}
    </div>
  )
}
