import { Button, Tooltip } from 'antd'
import { MonitorUp, Pin, Trash2 } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useFolders } from '@/api/folders'
import { useAgents } from '@/api/hooks'
import { useProjectChanges, useProjects } from '@/api/projects'
import type { Folder, RecentProject } from '@/api/types.gen'
import { isReached } from '@/lib/connection'
import { RelativeTime } from '@/ui/Times'
import css from './folders.module.css'

/** Finds the folder of a remembered project, or says why it cannot be used. */
export function useProjectFolder(): (project: RecentProject) => { folder?: Folder; trouble?: string } {
  const { t } = useTranslation('folders')
  const agents = useAgents().data
  const folders = useFolders().data
  return (project) => {
    const agent = agents?.find((a) => a.name === project.agent)
    if (agents && !agent) return { trouble: t('recent.noMachine', { agent: project.agent }) }
    if (agent && !isReached(agent)) return { trouble: t('recent.away', { agent: project.agent }) }
    const folder = folders?.find((f) => f.id === project.folder && f.state === 'ready')
    if (folder?.missing) return { trouble: t('missingText') }
    if (folder) return { folder }
    return folders ? { trouble: t('recent.noFolder') } : {}
  }
}

interface ProjectListProps {
  onOpen: (project: RecentProject, folder: Folder) => void
  /** Opens it on another machine. There is no folder if that cannot be used. */
  onElsewhere: (project: RecentProject, folder?: Folder) => void
}

/** The remembered projects: open, pin, open on another machine, forget. */
export function ProjectList({ onOpen, onElsewhere }: ProjectListProps) {
  const { t } = useTranslation('folders')
  const projects = useProjects().data ?? []
  const several = (useAgents().data ?? []).length > 1
  const folderOf = useProjectFolder()
  const changes = useProjectChanges()
  if (projects.length === 0) return null
  return (
    <section aria-label={t('recent.title')}>
      <div className={css.subtitle}>{t('recent.title')}</div>
      <ul className={css.projects}>
        {projects
          .toSorted((a, b) => Number(b.pinned) - Number(a.pinned))
          .map((project) => {
            const { id, name, pinned } = project
            const { folder, trouble } = folderOf(project)
            const path = [folder?.path, project.path].filter(Boolean).join('/')
            const tool = (label: string, icon: React.ReactNode, onClick: () => void, pressed?: boolean) => (
              <Tooltip title={label}>
                <Button
                  type="text"
                  size="small"
                  aria-label={label}
                  aria-pressed={pressed}
                  className={pressed ? (css.pinned ?? '') : ''}
                  icon={icon}
                  onClick={onClick}
                />
              </Tooltip>
            )
            return (
              <li key={id} className={css.project}>
                {tool(
                  t(pinned ? 'recent.unpin' : 'recent.pin', { name }),
                  <Pin size={14} />,
                  () => changes.pin(project),
                  pinned,
                )}
                <div className={css.place}>
                  <button
                    type="button"
                    className={css.open}
                    disabled={!folder}
                    onClick={() => folder && onOpen(project, folder)}
                  >
                    {name}
                  </button>
                  <span className={trouble ? css.fault : css.hint} title={project.address}>
                    {trouble ?? [project.agent, path].filter(Boolean).join(' · ')}
                  </span>
                </div>
                <span className={css.hint}>
                  <RelativeTime at={project.openedAt} />
                </span>
                <span className={css.actions}>
                  {several && (folder || project.address)
                    ? tool(t('recent.elsewhere', { name }), <MonitorUp size={14} />, () => onElsewhere(project, folder))
                    : null}
                  {tool(t('recent.forget', { name }), <Trash2 size={14} />, () => changes.forget(project))}
                </span>
              </li>
            )
          })}
      </ul>
    </section>
  )
}
