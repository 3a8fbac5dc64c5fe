import { useQuery } from '@tanstack/react-query'
import { Button } from 'antd'
import { Hammer } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { call } from '@/api/client'
import { keys } from '@/api/keys'
import { useProjects } from '@/api/projects'
import type { Session } from '@/api/types.gen'
import { projectAddress } from '@/lib/project'
import { isLive } from '@/lib/status'
import css from './SessionDrawer.module.css'

/** Says that the project of a live session has changed since its image was built. */
export function ProjectNotice({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const navigate = useNavigate()
  const project = useProjects().data?.find(
    (p) => p.image === session.spec.image && session.folders.some((f) => f.folder === p.folder),
  )
  const { folder = '', path = '', file = '', environment = '' } = project ?? {}
  const { data } = useQuery({
    queryKey: keys.project(folder, path, file, environment),
    queryFn: () => call('project', { path: { folder }, body: { path, file, environment } }),
    staleTime: 0, // its files may have changed
    enabled: project !== undefined && isLive(session.status),
    retry: false,
  })
  if (!project || !data || data.image === project.image) return null
  return (
    <div className={css.notice} role="status">
      <Hammer size={16} aria-hidden />
      <div className={css.noticeBody}>
        <div className={css.noticeTitle}>{t('project.changed', { name: project.name })}</div>
        <div className={css.noticeButtons}>
          <Button size="small" onClick={() => void navigate(projectAddress(project.id))}>
            {t('project.rebuild')}
          </Button>
        </div>
      </div>
    </div>
  )
}
