import { Button } from 'antd'
import { FolderPlus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useFolders } from '@/api/folders'
import { HOME } from '@/api/rules.gen'
import type { Folder } from '@/api/types.gen'
import css from './launcher.module.css'
import { Card } from './Card'
import { DirectoryPicker } from './DirectoryPicker'
import type { MountRow } from './draft'
import { FolderTable } from './FolderTable'
import { HomeCard } from './HomeCard'
import { MountLine } from './MountLine'
import { mountTarget } from './mountPath'
import type { StepProps } from './StepProps'
import { SubPathPicker } from './SubPathPicker'
import { useMachinesFor } from './useMachinesFor'
import { machineFor } from './waits'

interface StorageStepProps extends StepProps {
  /** The files of a folder, over the launcher. */
  files: (folder: Folder, onClose: () => void) => ReactNode
}

export function StorageStep({ draft, issues, change, files }: StorageStepProps) {
  const { t } = useTranslation('launcher')
  const machines = useMachinesFor(draft.group).machines ?? []
  const machine = machineFor(draft.agent, machines)
  // A directory is one machine's: picking it there chooses that machine.
  const several = machines.length > 1
  // The place a picked directory goes to: a row, or a new one at the end.
  const [picking, setPicking] = useState<number | null>(null)
  const folders = useFolders().data ?? []
  const folderOf = (mount: MountRow) =>
    folders.find((f) => f.name === mount.folder && f.state === 'ready' && f.agent === machine?.agent)
  const [inside, setInside] = useState<number | null>(null)
  const [opened, setOpened] = useState<Folder | null>(null)
  const mounted = inside === null ? undefined : draft.mounts[inside]
  const within = mounted && folderOf(mounted)
  const add = (row: MountRow) => change((old) => ({ ...old, mounts: [...old.mounts, row] }))
  const set = (index: number, row: Partial<MountRow>) =>
    change((old) => ({ ...old, mounts: old.mounts.map((m, i) => (i === index ? { ...m, ...row } : m)) }))
  const picked = (source: string) => {
    const index = picking
    setPicking(null)
    if (index === null) return
    if (several && machine && draft.agent === '') change({ agent: machine.agent, group: '' })
    if (index < draft.mounts.length) set(index, { source })
    else add({ source, target: '', readOnly: false })
  }
  const mount = (folder: Folder) => {
    if (several && draft.agent === '') change({ agent: folder.agent, group: '' })
    const home = folder.home && folder.permission === 'rw' && !draft.mounts.some((m) => mountTarget(m) === HOME)
    add({
      source: '',
      folder: folder.name,
      path: '',
      target: home ? HOME : '',
      readOnly: folder.permission === 'ro',
    })
  }
  if (draft.admin && draft.mounts.length === 0)
    return (
      <Card title={t('admin.title')} text={t('admin.noFolders')}>
        <div className={css.buttons}>
          <Button onClick={() => change({ admin: false })}>{t('admin.off')}</Button>
        </div>
      </Card>
    )
  return (
    <>
      <Card title={t('storage.folders')} text={t('storage.foldersText')}>
        <FolderTable
          machine={machine?.agent}
          any={draft.agent === ''}
          isMounted={(folder) => folder.agent === machine?.agent && draft.mounts.some((m) => m.folder === folder.name)}
          onMount={mount}
          onUnmount={(folder) =>
            change((old) => ({ ...old, mounts: old.mounts.filter((m) => m.folder !== folder.name) }))
          }
          onOpen={setOpened}
        />
      </Card>
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
            onBrowse={
              mount.folder === undefined
                ? () => setPicking(index)
                : folderOf(mount)
                  ? () => setInside(index)
                  : undefined
            }
            onChange={(row) => set(index, row)}
            onRemove={() => change((old) => ({ ...old, mounts: old.mounts.filter((_, i) => i !== index) }))}
          />
        ))}
        <div className={css.buttons}>
          <Button icon={<FolderPlus size={15} />} disabled={!machine} onClick={() => setPicking(draft.mounts.length)}>
            {t('storage.add')}
          </Button>
          <Button type="text" onClick={() => add({ source: '', target: '', readOnly: false })}>
            {t('storage.addByHand')}
          </Button>
        </div>
      </Card>
      <HomeCard draft={draft} issues={issues} change={change} />
      {picking !== null && machine ? (
        <DirectoryPicker
          agent={machine.agent}
          named={several}
          start={draft.mounts[picking]?.source ?? ''}
          onPick={picked}
          onClose={() => setPicking(null)}
        />
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
      {opened ? files(opened, () => setOpened(null)) : null}
    </>
  )
}
