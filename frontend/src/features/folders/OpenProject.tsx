import { useQueryClient } from '@tanstack/react-query'
import { Input, Segmented, Select } from 'antd'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyOperation } from '@/api/book'
import { asProblem, type ApiProblem, call } from '@/api/client'
import { useMachines, useOperations } from '@/api/hooks'
import type { Agent, Folder } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { isRunning } from '@/lib/operation'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import { OperationView } from '@/ui/OperationView'
import css from './folders.module.css'

interface OpenProjectProps {
  /** Of a repository, as a link has named it; empty: none. */
  address: string
  agents: readonly Agent[]
  folders: readonly Folder[]
  onClose: () => void
  /** Is called with the folder that has the project, and the project's directory in it. */
  onOpened: (folder: Folder, path: string) => void
}

type Source = 'repository' | 'directory' | 'folder'

/** Opens a project: of a repository, which is cloned, of a directory of this computer, or of a folder. */
export function OpenProject({ address: asked, agents, folders, onClose, onOpened }: OpenProjectProps) {
  const { t } = useTranslation(['folders', 'common'])
  const local = agents.find((a) => a.local)?.name ?? ''
  const simulated = useMachines().data?.some((m) => m.agent === local && m.engine === 'sim') ?? false
  const [source, setSource] = useState<Source>(simulated && !asked ? 'folder' : 'repository')
  const [address, setAddress] = useState(asked)
  const [directory, setDirectory] = useState('')
  const [folder, setFolder] = useState('')
  const [agent, setAgent] = useState(local)
  const [cloning, setCloning] = useState('')
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const client = useQueryClient()
  const operation = (useOperations().data ?? []).find((o) => o.id === cloning)
  const actions = useOperationActions(cloning)
  const done = operation?.state === 'done' ? operation : undefined
  useEffect(() => {
    if (!done) return
    call('folder', { path: { folder: done.folder ?? '' }, query: { agent: done.agent ?? '' } })
      .then((made) => onOpened(made, address.split('#')[1] ?? ''))
      .catch((error: unknown) => setProblem(asProblem(error)))
  }, [done, address, onOpened])
  const path = directory.trim()
  const chosen = folders.find((f) => f.id === folder)
  const able = source === 'repository' ? address.trim() !== '' : source === 'directory' ? path !== '' : chosen
  const choose = (next: Source) => {
    setSource(next)
    setCloning('')
    setProblem(null)
  }
  const go = async () => {
    setProblem(null)
    try {
      if (source === 'repository') {
        const body = { address: address.trim(), directory: path, agent }
        const begun = await call('project-clone', { body })
        applyOperation(client, begun)
        setCloning(begun.id)
      } else if (source === 'directory') {
        const known = folders.find((f) => f.agent === local && f.path === path)
        const name = path.split(/[\\/]/).filter(Boolean).at(-1) ?? ''
        const body = { name, agent: local, path, permission: 'rw' as const, mode: 'general' as const }
        onOpened(known ?? (await call('folder-create', { body })), '')
      } else if (chosen) {
        onOpened(chosen, '')
      }
    } catch (error) {
      setProblem(asProblem(error))
    }
  }
  const busy = operation !== undefined && (isRunning(operation) || done !== undefined)
  const failure = problem ?? (operation?.state === 'failed' ? operation.error : undefined)
  const sources: Source[] = simulated ? ['folder'] : ['repository', 'directory', 'folder']
  return (
    <Dialog
      width={620}
      title={t('folders:openProject.title')}
      okText={t(source === 'repository' ? 'folders:openProject.clone' : 'folders:openProject.go')}
      cancelText={t('common:action.close')}
      okButtonProps={{ disabled: !able || busy }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      {busy ? (
        <OperationView operation={operation} follow {...actions} />
      ) : (
        <>
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
                <span className={css.hint}>{t('folders:openProject.addressHint')}</span>
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
            ) : (
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
            {source === 'repository' && agents.length > 1 ? (
              <label>
                {t('folders:dialog.agent')}
                <Select
                  value={agent}
                  options={agents.map((a) => ({ value: a.name, label: a.name }))}
                  onChange={setAgent}
                />
                {agent === local ? null : (
                  <span className={css.hint}>{t('folders:openProject.copied', { agent })}</span>
                )}
              </label>
            ) : null}
            {failure ? <ErrorState compact problem={failure} /> : null}
          </div>
        </>
      )}
    </Dialog>
  )
}
