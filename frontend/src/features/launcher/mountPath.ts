import { HOME } from '../../api/rules.gen'
import type { MountRow } from './draft'

/** Removes empty and dot parts of an absolute path and climbs at "..". */
function cleanPath(path: string): string {
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..') parts.pop()
    else parts.push(part)
  }
  return `/${parts.join('/')}`
}

/** Where a mount will appear in the session. */
export function mountTarget({ source, folder, target }: Pick<MountRow, 'source' | 'folder' | 'target'>): string {
  const wanted = target.trim() || folder || cleanPath(source.trim()).split('/').pop() || ''
  return cleanPath(wanted.startsWith('/') ? wanted : `${HOME}/${wanted}`)
}

/** Whether a path inside of a folder leads out of it, or nowhere. */
export function subPathFault(path: string): boolean {
  const text = path.trim().replace(/\/$/, '')
  return (
    text !== '' &&
    (/[\\\p{Cc}]/u.test(text) || text.split('/').some((part) => part === '' || part === '.' || part === '..'))
  )
}
