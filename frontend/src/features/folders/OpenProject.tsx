import { useQueryClient } from '@tanstack/react-query'
import { Input, Segmented, Select } from 'antd'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyOperation } from '@/api/book'
import { asProblem, type ApiProblem, call } from '@/api/client'
import { useMachines, useOperations } from '@/api/hooks'
import { FOLDER_NAME } from '@/api/rules.gen'
import type { Agent, Folder, Operation, RecentProject } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { nameFault } from '@/lib/names'
import { isRunning } from '@/lib/operation'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import { OperationView } from '@/ui/OperationView'
import css from './folders.module.css'
import { type Dropped, folderNameOf, type Opening, openingOf } from './opening'
import { ProjectList } from './ProjectList'
import { UploadFields } from './UploadFields'

interface OpenProjectProps {
  /** Of a repository, as a link has named it; empty: none. */
  address: string
  /** A directory that was dropped; null: none. */
  dropped: Dropped | null
  agents: readonly Agent[]
  folders: readonly Folder[]
  onClose: () => void
  onOpened: (opening: Opening) => void
}

const fresh = { permission: 'rw', mode: 'general' } as const

type Start = Omit<Opening, 'folder'>
type Source = 'repository' | 'directory' | 'folder' | 'elsewhere' | 'upload'

/**
 * Opens a project: a remembered one, also on another machine, one of a repository, which is cloned, of a directory of
 * this computer, of one that a browser uploads, or of a folder.
 */
export function OpenProject({ address: asked, dropped, agents, folders, onClose, onOpened }: OpenProjectProps) {
  const { t } = useTranslation(['folders', 'common'])
  const local = agents.find((a) => a.local)?.name ?? ''
  const simulated = useMachines().data?.some((m) => m.agent === local && m.engine === 'sim') ?? false
  const far = agents.filter((a) => !a.local)
  const files = dropped && !('path' in dropped) ? dropped : null
  const first = files ? 'upload' : dropped ? 'directory' : simulated && !asked ? 'folder' : 'repository'
  const [source, setSource] = useState<Source>(first)
  const [address, setAddress] = useState(asked)
  const [directory, setDirectory] = useState(dropped && 'path' in dropped ? dropped.path : '')
  const [name, setName] = useState(files ? folderNameOf(files.name) : '')
  const [target, setTarget] = useState<Folder | null>(null) // the files are uploaded to it
  const [folder, setFolder] = useState('')
  const [agent, setAgent] = useState(local)
  const [moved, setMoved] = useState<Opening | null>(null) // it is opened on another machine
  const [start, setStart] = useState<Start>({ dir: '' })
  const [working, setWorking] = useState('')
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const client = useQueryClient()
  const operation = (useOperations().data ?? []).find((o) => o.id === working)
  const actions = useOperationActions(working)
  const done = operation?.state === 'done' ? operation : undefined
  useEffect(() => {
    if (!done) return
    call('folder', { path: { folder: done.folder ?? '' }, query: { agent: done.agent ?? '' } })
      .then((made) => onOpened({ ...start, folder: made }))
      .catch((error: unknown) => setProblem(asProblem(error)))
  }, [done, start, onOpened])
  const upload = target && files?.stateOf(target)
  useEffect(() => {
    if (target && upload === 'whole') onOpened({ folder: target, dir: '' })
  }, [target, upload, onOpened])
  const path = directory.trim()
  const cloner = simulated && agent === local ? (far[0]?.name ?? '') : agent // of a repository
  const chosen = folders.find((f) => f.id === folder)
  const others = agents.filter((a) => a.name !== moved?.folder.agent)
  const twin = moved && folders.find((f) => f.agent === agent && f.name === moved.folder.name)
  const able = {
    repository: address.trim() !== '',
    directory: path !== '',
    folder: chosen,
    elsewhere: moved,
    upload: nameFault(FOLDER_NAME, name) === '',
  }[source]
  const choose = (next: Source) => {
    setSource(next)
    setWorking('')
    setProblem(null)
  }
  const goElsewhere = (known: RecentProject, from?: Folder) => {
    choose(from ? 'elsewhere' : 'repository')
    setMoved(from ? openingOf(known, from) : null)
    setAddress(known.address ?? '')
    setAgent(agents.find((a) => a.name !== known.agent)?.name ?? local)
  }
  const begin = (begun: Operation, then: Start) => {
    applyOperation(client, begun)
    setStart(then)
    setWorking(begun.id)
  }
  const go = async () => {
    setProblem(null)
    try {
      if (source === 'repository') {
        const from = address.trim()
        const begun = await call('project-clone', { body: { address: from, directory: path, agent: cloner } })
        begin(begun, { dir: from.split('#')[1] ?? '', address: from })
      } else if (source === 'elsewhere') {
        if (!moved) return
        const { folder: from, ...rest } = moved
        const body = { from: { folder: from.id, agent: from.agent }, to: { folder: from.name, agent } }
        if (twin) onOpened({ ...rest, folder: twin })
        else begin(await call('file-copy', { body }), rest)
      } else if (source === 'directory') {
        const known = folders.find((f) => f.agent === local && f.path === path)
        const body = { ...fresh, name: folderNameOf(path), agent: local, path }
        onOpened({ folder: known ?? (await call('folder-create', { body })), dir: '' })
      } else if (source === 'upload') {
        const made = target ?? (await call('folder-create', { body: { ...fresh, name, agent } }))
        if (target) onOpened({ folder: made, dir: '' })
        else files?.upload(made)
        setTarget(made)
      } else if (chosen) {
        onOpened({ folder: chosen, dir: '' })
      }
    } catch (error) {
      setProblem(asProblem(error))
    }
  }
  const busy = operation !== undefined && (isRunning(operation) || done !== undefined)
  const failure = problem ?? (operation?.state === 'failed' ? operation.error : undefined)
  const sources: Source[] = simulated ? ['folder'] : ['repository', 'directory', 'folder']
  if (simulated && far.length > 0) sources.unshift('repository')
  if (moved) sources.push('elsewhere')
  if (files) sources.push('upload')
  const verb = {
    repository: 'clone' as const,
    elsewhere: twin ? ('go' as const) : ('copy' as const),
    upload: target ? ('go' as const) : ('upload' as const),
    directory: 'go' as const,
    folder: 'go' as const,
  }[source]
  return (
    <Dialog
      width={620}
      title={t('folders:openProject.title')}
      okText={t(`folders:openProject.${verb}`)}
      cancelText={t('common:action.close')}
      okButtonProps={{ disabled: !able || busy || upload === 'sending' }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      {busy ? (
        <OperationView operation={operation} follow {...actions} />
      ) : target && files ? (
        files.listOf(target)
      ) : (
        <div className={css.form} data-takes-drop>
          <ProjectList onOpen={(known, from) => onOpened(openingOf(known, from))} onElsewhere={goElsewhere} />
          {sources.length > 1 ? (
            <Segmented
              aria-label={t('folders:openProject.from')}
              value={source}
              options={sources.map((value) => ({ value, label: t(`folders:openProject.${value}`) }))}
              onChange={choose}
            />
          ) : null}
          <div className={css.form}>
            {source === 'repository' ? (
              <label>
                {t('folders:openProject.address')}
                <Input
                  autoFocus
                  value={address}
                  placeholder="https://example.com/ada/paper.git@v2#notebooks"
                  spellCheck={false}
                  onChange={(event) => setAddress(event.target.value)}
                  onPressEnter={() => able && void go()}
                />
                <span className={css.hint}>
                  {t(simulated ? 'folders:openProject.addressThere' : 'folders:openProject.addressHint')}
                </span>
              </label>
            ) : null}
            {source === 'folder' ? (
              <label>
                {t('folders:openProject.folder')}
                <Select
                  showSearch={{ optionFilterProp: 'label' }}
                  value={folder || null}
                  options={folders.map((f) => ({ value: f.id, label: `${f.name} (${f.agent})` }))}
                  onChange={setFolder}
                />
              </label>
            ) : source === 'upload' && files ? (
              <UploadFields files={files} name={name} agent={agent} {...{ agents, setName, setAgent }} />
            ) : source === 'elsewhere' ? (
              <label>
                {t('folders:dialog.agent')}
                <Select
                  value={agent}
                  options={others.map((a) => ({ value: a.name, label: a.name }))}
                  onChange={setAgent}
                />
                <span className={css.hint}>
                  {t(twin ? 'folders:openProject.twin' : 'folders:openProject.copies', {
                    agent,
                    name: moved?.folder.name,
                    from: moved?.folder.agent,
                  })}
                </span>
              </label>
            ) : source === 'repository' && simulated ? null : (
              <label>
                {t(source === 'repository' ? 'folders:openProject.into' : 'folders:openProject.directory')}
                <Input
                  value={directory}
                  placeholder={source === 'repository' ? t('folders:openProject.home') : '/home/ada/paper'}
                  spellCheck={false}
                  onChange={(event) => setDirectory(event.target.value)}
                  onPressEnter={() => able && void go()}
                />
                {source === 'directory' ? (
                  <span className={css.hint}>{t('folders:openProject.directoryHint')}</span>
                ) : null}
              </label>
            )}
            {source === 'repository' && far.length > 0 ? (
              <label>
                {t('folders:dialog.agent')}
                <Select
                  value={cloner}
                  options={(simulated ? far : agents).map((a) => ({ value: a.name, label: a.name }))}
                  onChange={setAgent}
                />
                {simulated || agent === local ? null : (
                  <span className={css.hint}>{t('folders:openProject.copied', { agent })}</span>
                )}
              </label>
            ) : null}
            {failure ? <ErrorState compact problem={failure} /> : null}
          </div>
        </div>
      )}
    </Dialog>
  )
}
