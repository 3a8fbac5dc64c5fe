import { Button } from 'antd'
import { FolderPlus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useFolders } from '@/api/folders'
import { HOME } from '@/api/rules.gen'
import type { Folder } from '@/api/types.gen'
import css from './launcher.module.css'
import { AgentField } from './AgentField'
import { awayOf, placeOf } from './away'
import { Card } from './Card'
import { CopyFolder } from './CopyFolder'
import { DirectoryPicker } from './DirectoryPicker'
import type { MountRow } from './draft'
import { FolderTable } from './FolderTable'
import { HomeCard } from './HomeCard'
import { MountLine } from './MountLine'
import { mountTarget } from './mountPath'
import type { StepProps } from './StepProps'
import { SubPathPicker } from './SubPathPicker'
import { useMachinesFor } from './useMachinesFor'

interface StorageStepProps extends StepProps {
  /** The machine on which it would run as it stands. */
  lands: string | undefined
  /** The files of a folder, over the launcher. */
  files: (folder: Folder, onClose: () => void) => ReactNode
}

export function StorageStep({ draft, issues, change, lands, files }: StorageStepProps) {
  const { t } = useTranslation('launcher')
  const known = useMachinesFor(draft.group).machines ?? []
  const machines = known.filter((m) => m.online).map((m) => m.agent)
  // Data is one machine's: where none was chosen, it chooses that machine.
  const several = known.length > 1
  const place = placeOf(draft)
  const home = machines.find((name) => name === (place || lands)) ?? machines[0] ?? ''
  // The place a picked directory goes to: a row, or a new one at the end.
  const [picking, setPicking] = useState<number | null>(null)
  const folders = useFolders().data ?? []
  const isOf = (mount: MountRow, folder: Folder) =>
    mount.folder === folder.name && (mount.agent ?? home) === folder.agent
  const folderOf = (mount: MountRow) => folders.find((f) => f.state === 'ready' && isOf(mount, f))
  const [inside, setInside] = useState<number | null>(null)
  const [opened, setOpened] = useState<Folder | null>(null)
  const mounted = inside === null ? undefined : draft.mounts[inside]
  const within = mounted && folderOf(mounted)
  const set = (index: number, row: Partial<MountRow>) =>
    change((old) => ({ ...old, mounts: old.mounts.map((m, i) => (i === index ? { ...m, ...row } : m)) }))
  /** Adds what is on a machine, which is where the session runs unless a machine was chosen already. */
  const add = (row: MountRow, agent: string) =>
    change((old) => ({
      ...old,
      ...(several && agent && placeOf(old) === '' ? { agent, group: '' } : {}),
      mounts: [...old.mounts, row],
    }))
  const picked = (source: string) => {
    const index = picking
    setPicking(null)
    if (index === null) return
    if (index < draft.mounts.length) set(index, { source })
    else add({ source, target: '', readOnly: false }, home)
  }
  const mount = ({ name, agent, permission, home: kept }: Folder) => {
    const asHome = kept && permission === 'rw' && !draft.mounts.some((m) => mountTarget(m) === HOME)
    add(
      {
        source: '',
        folder: name,
        path: '',
        ...(several ? { agent } : {}),
        target: asHome ? HOME : '',
        readOnly: permission === 'ro',
      },
      agent,
    )
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
        {several ? (
          <div className={css.two}>
            <AgentField draft={draft} issues={issues} change={change} />
          </div>
        ) : null}
        <FolderTable
          machine={place || (several ? '' : home)}
          home={home}
          machines={machines}
          several={several}
          isMounted={(folder) => draft.mounts.some((m) => isOf(m, folder))}
          onMount={mount}
          onUnmount={(folder) => change((old) => ({ ...old, mounts: old.mounts.filter((m) => !isOf(m, folder)) }))}
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
        {draft.mounts.map((mount, index) => {
          const away = awayOf(mount, folders, place)
          return (
            <MountLine
              key={index}
              mount={mount}
              index={index}
              issues={issues}
              machine={several ? mount.agent : undefined}
              onBrowse={
                mount.folder === undefined
                  ? () => setPicking(index)
                  : folderOf(mount)
                    ? () => setInside(index)
                    : undefined
              }
              onChange={(row) => set(index, row)}
              onRemove={() => change((old) => ({ ...old, mounts: old.mounts.filter((_, i) => i !== index) }))}
            >
              {away ? (
                <CopyFolder
                  away={away}
                  onUse={(folder) => set(index, { folder, agent: away.to })}
                  onMove={(agent) => change({ agent, group: '' })}
                />
              ) : null}
            </MountLine>
          )
        })}
        <div className={css.buttons}>
          <Button
            icon={<FolderPlus size={15} />}
            disabled={home === ''}
            onClick={() => setPicking(draft.mounts.length)}
          >
            {several ? t('storage.addOn', { agent: home }) : t('storage.add')}
          </Button>
          <Button type="text" onClick={() => add({ source: '', target: '', readOnly: false }, '')}>
            {t('storage.addByHand')}
          </Button>
        </div>
      </Card>
      <HomeCard draft={draft} issues={issues} change={change} />
      {picking !== null && home ? (
        <DirectoryPicker
          agent={home}
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
