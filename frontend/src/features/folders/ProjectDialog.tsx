import { useQuery } from '@tanstack/react-query'
import { Alert, Button, Select, Skeleton } from 'antd'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem, call } from '@/api/client'
import { useAgents, useEnvironments, useOperations } from '@/api/hooks'
import { keys } from '@/api/keys'
import { useSecrets } from '@/api/secrets'
import type { BuildPlace, Folder, FolderMount, Mount, Project, RecentProject, Spec } from '@/api/types.gen'
import { useOperationActions, useStartOperation } from '@/api/useOperation'
import { isRunning } from '@/lib/operation'
import { whyText } from '@/lib/phrases'
import { CopyButton } from '@/ui/CopyButton'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import { OperationView } from '@/ui/OperationView'
import { BuildPlaces } from './BuildPlaces'
import css from './folders.module.css'
import type { Opening } from './opening'
import { TakeDockerfile } from './TakeDockerfile'

interface ProjectDialogProps {
  opening: Opening
  onClose: () => void
  onLaunch: (spec: Spec) => Promise<void>
}

const mountOf = ({ folder, path, target, readOnly = false }: FolderMount): Mount => ({
  folder,
  ...(path ? { path } : {}),
  target,
  readOnly,
})

/** What a session of a project is launched with. */
function specOf(folder: Folder, project: Project): Spec {
  return {
    image: project.image,
    agent: folder.agent,
    resources: project.minimum ?? {},
    mounts: project.mounts?.map(mountOf) ?? [{ folder: folder.id }],
    env: project.env ?? [],
    ports: project.ports ?? [],
    ...(project.setup ? { setup: project.setup } : {}),
    ...(project.accelerator ? { accelerator: project.accelerator } : {}),
  }
}

/** Shows what a project in a folder asks for, builds its image, and goes on to the launcher. It is remembered. */
export function ProjectDialog({ opening, onClose, onLaunch }: ProjectDialogProps) {
  const { t } = useTranslation(['folders', 'common'])
  const { folder, dir, address = '' } = opening
  const [file, setFile] = useState(opening.file ?? '')
  const [environment, setEnvironment] = useState(opening.environment ?? '')
  const [building, setBuilding] = useState('')
  const start = useStartOperation()
  const body = { path: dir, file, environment }
  const path = { folder: folder.id }
  const key = keys.project(folder.id, dir, file, environment)
  const query = useQuery({
    queryKey: key,
    queryFn: () => call('project', { path, body }),
    staleTime: 0, // its files may have changed
    retry: false,
  })
  const operation = (useOperations().data ?? []).find((o) => o.id === building)
  const actions = useOperationActions(building)
  const busy = operation !== undefined && isRunning(operation)
  const { refetch } = query
  const isRead = query.isSuccess
  const [known, setKnown] = useState<RecentProject>()
  const remembered = useRef(false)
  useEffect(() => {
    if (!isRead || remembered.current) return
    remembered.current = true
    const { folder: of, dir: at, ...chosen } = opening
    // It is opened all the same if it cannot be remembered.
    call('project-open', { path: { folder: of.id }, body: { ...chosen, path: at } }).then(setKnown, () => {})
  }, [isRead, opening])
  useEffect(() => {
    if (operation?.state === 'done') void refetch()
  }, [operation?.state, refetch])
  const project = query.data
  const ready = project !== undefined && (project.present || !project.dockerfile)
  const agents = useAgents().data ?? []
  const chooses = query.isSuccess && !ready && agents.some((a) => a.name === folder.agent && !a.local)
  const [chosen, setPlace] = useState<BuildPlace>()
  const choices = useQuery({
    queryKey: keys.buildChoices(key),
    queryFn: () => call('project-build-choices', { path, body }),
    enabled: chooses,
    staleTime: 0, // what the machines have may have changed
    retry: false,
  })
  const able = choices.data?.filter((one) => !one.why)
  const place = (able?.find((one) => one.where === chosen) ?? able?.[0])?.where
  const places = chooses ? (
    <BuildPlaces agent={folder.agent} choices={choices} value={place} onChange={setPlace} />
  ) : null
  const noPlace = chooses && (choices.isPending || able?.length === 0)
  const asBefore = file === (opening.file ?? '') && environment === (opening.environment ?? '')
  const changed = !ready && asBefore && Boolean(known?.image) && known?.image !== project?.image
  const go = async () => {
    if (!project) return
    if (ready) {
      await call('project-open', { path, body: { ...body, address, image: project.image } }).catch(() => undefined)
      await onLaunch(specOf(folder, project))
      return
    }
    const begun = await start(() =>
      call('project-build', { path, body: { ...body, where: place ?? '', secrets: project.secrets ?? [] } }),
    )
    if (begun) setBuilding(begun.id)
  }
  return (
    <Dialog
      width={680}
      title={t('folders:project.title', { name: folder.name })}
      okText={t(`folders:project.${ready ? 'launch' : changed ? 'rebuild' : 'build'}`)}
      cancelText={t('common:action.close')}
      okButtonProps={{ disabled: !project || busy || query.isFetching || noPlace }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      {query.error ? (
        <ErrorState compact problem={asProblem(query.error)} onRetry={() => void refetch()} />
      ) : !project ? (
        <Skeleton active />
      ) : operation && operation.state !== 'done' ? (
        <div className={css.form}>
          <span className={css.mono}>{project.image}</span>
          <OperationView operation={operation} follow {...actions} />
          {busy ? null : places}
        </div>
      ) : (
        <>
          {changed ? <Alert type="info" showIcon title={t('folders:project.changed')} /> : null}
          <ProjectFacts
            opening={opening}
            project={project}
            places={places}
            onFile={setFile}
            onEnvironment={setEnvironment}
          />
        </>
      )}
    </Dialog>
  )
}

interface ProjectFactsProps {
  opening: Opening
  project: Project
  /** The choice of where it is built; null: there is none. */
  places: ReactNode
  onFile: (file: string) => void
  onEnvironment: (image: string) => void
}

function ProjectFacts({ opening, project, places, onFile, onEnvironment }: ProjectFactsProps) {
  const { t } = useTranslation('folders')
  const [open, setOpen] = useState(!project.present) // what is built is seen before
  const environments = useEnvironments().data ?? []
  const base = project.bases[0] ?? project.image
  const offered = environments.flatMap((family) =>
    family.versions.map((v) => ({ value: v.image, label: `${family.title} ${v.title}` })),
  )
  // One that is built below a directory of its own would have to be elsewhere, or to say so.
  const takeable = project.kind === 'packages' && !project.files.some((name) => /[/]|^Dockerfile$/.test(name))
  const chooses = project.kind === 'packages' || project.kind === 'plain'
  return (
    <div className={css.form}>
      {project.files.length > 0 ? (
        <label>
          {t('project.file')}
          <Select
            value={project.file ?? ''}
            options={project.files.map((name) => ({ value: name, label: name }))}
            onChange={onFile}
          />
          <span className={css.hint}>{t(`project.kind.${project.kind as 'plain'}`)}</span>
        </label>
      ) : (
        <span>{t('project.kind.plain')}</span>
      )}
      {chooses ? (
        <label>
          {t('project.environment')}
          <Select
            showSearch={{ optionFilterProp: 'label' }}
            value={base}
            options={offered.some((one) => one.value === base) ? offered : [{ value: base, label: base }, ...offered]}
            onChange={onEnvironment}
          />
        </label>
      ) : null}
      <dl className={css.facts}>
        <dt>{t('project.image')}</dt>
        <dd className={css.mono}>{project.image}</dd>
        <dt>{t('project.state')}</dt>
        <dd>{t(project.present ? 'project.present' : project.dockerfile ? 'project.absent' : 'project.pulled')}</dd>
      </dl>
      {places}
      {project.mounts ? <ProjectMounts mounts={project.mounts} /> : null}
      {project.secrets && !project.present ? <BuildSecrets names={project.secrets} /> : null}
      {project.left && project.left.length > 0 ? (
        <div>
          <div className={css.subtitle}>{t('project.left')}</div>
          <ul className={css.left}>
            {project.left.map(({ what, why }) => (
              <li key={`${what} ${why.say}`}>
                <code>{what}</code> {whyText({ said: [why] })}
              </li>
            ))}
          </ul>
        </div>
      ) : null}
      {project.setup ? (
        <div>
          <div className={css.subtitle}>{t('project.setup')}</div>
          <span className={css.hint}>{t('project.setupHint')}</span>
          <pre className={css.dockerfile} tabIndex={0} aria-label={t('project.setup')}>
            {project.setup}
          </pre>
        </div>
      ) : null}
      {project.dockerfile ? (
        <div>
          <div className={css.subtitle}>
            <Button type="link" size="small" aria-expanded={open} onClick={() => setOpen(!open)}>
              {t(open ? 'project.hide' : 'project.show')}
            </Button>
            {open ? (
              <span className={css.actions}>
                {takeable ? (
                  <TakeDockerfile
                    folder={opening.folder.id}
                    dir={opening.dir}
                    text={project.dockerfile}
                    onTaken={onFile}
                  />
                ) : null}
                <CopyButton text={project.dockerfile} label={t('project.copy')} />
              </span>
            ) : null}
          </div>
          {open ? (
            <pre className={css.dockerfile} tabIndex={0} aria-label={t('project.dockerfile')}>
              {project.dockerfile}
            </pre>
          ) : null}
        </div>
      ) : null}
    </div>
  )
}

/** The folders that a session of the project gets: its own first, then others that its code can read and change. */
function ProjectMounts({ mounts }: { mounts: FolderMount[] }) {
  const { t } = useTranslation('folders')
  const own = mounts[0]?.folder
  return (
    <div>
      <div className={css.subtitle}>{t('project.mounts')}</div>
      {mounts.some(({ folder }) => folder !== own) ? <span className={css.hint}>{t('project.mountsHint')}</span> : null}
      <ul className={css.left}>
        {mounts.map(({ name, path, target, readOnly }) => (
          <li key={target}>
            <code>{[name, path].filter(Boolean).join('/')}</code> → <code>{target}</code>{' '}
            {readOnly ? `(${t('permission.ro')})` : null}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** The secrets that a build asks for: those that are stored, which it gets, and those that are missing. */
function BuildSecrets({ names }: { names: string[] }) {
  const { t } = useTranslation('folders')
  const stored = useSecrets().data
  const isStored = (name: string) => stored?.some((one) => one.kind === 'variable' && one.name === name)
  const missing = (name: string) => whyText({ said: [{ say: 'secretMissing', with: [{ hole: 'name', text: name }] }] })
  return (
    <div>
      <div className={css.subtitle}>{t('project.secrets')}</div>
      <ul className={css.left}>
        {names.map((name) => (
          <li key={name}>
            <code>{name}</code> {stored ? (isStored(name) ? t('project.secretStored') : missing(name)) : null}
          </li>
        ))}
      </ul>
    </div>
  )
}
