import { useEnvironments } from '@/api/hooks'
import { findVersion } from '@/api/environment'
import css from './SessionsPage.module.css'

/** The family of images that a session began with, and the version; a dash where its image is of none. */
export function EnvironmentCell({ image }: { image: string }) {
  const found = findVersion(useEnvironments().data ?? [], image)
  if (!found) return <span className={css.dim}>–</span>
  return (
    <span title={`${found.family.title} ${found.version.title} (${image})`}>
      {found.family.title} <span className={css.dim}>{found.version.title}</span>
    </span>
  )
}
