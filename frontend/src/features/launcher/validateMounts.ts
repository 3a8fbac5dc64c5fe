import type { MountRow } from './draft'
import type { Issue } from './issues'

/** The home and working directory of every session. */
export const HOME = '/home/work'

/** Places of the system, which a mount would break. */
const SYSTEM = [
  'bin',
  'boot',
  'dev',
  'etc',
  'home',
  'lib',
  'lib32',
  'lib64',
  'libx32',
  'media',
  'mnt',
  'opt',
  'proc',
  'root',
  'run',
  'sbin',
  'srv',
  'sys',
  'tmp',
  'usr',
  'var',
  '.slipway',
]

/** Places under which nothing may be mounted either. */
const SYSTEM_TREES = ['bin', 'boot', 'dev', 'etc', 'lib', 'lib32', 'lib64', 'libx32', 'proc', 'sbin', 'sys', '.slipway']

/** Removes empty and dot parts of an absolute path and climbs at "..". */
export function cleanPath(path: string): string {
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..') parts.pop()
    else parts.push(part)
  }
  return `/${parts.join('/')}`
}

/** Where a mount appears in the session: the rule of the control plane. */
export function mountTarget({ source, folder, target }: Pick<MountRow, 'source' | 'folder' | 'target'>): string {
  const wanted = target.trim() || folder || cleanPath(source.trim()).split('/').pop() || ''
  return cleanPath(wanted.startsWith('/') ? wanted : `${HOME}/${wanted}`)
}

/** What is wrong with the mounts. */
export function validateMounts(mounts: readonly MountRow[]): Issue[] {
  const issues: Issue[] = []
  const seen = new Map<string, number>()
  const fault = (field: string, key: string, values?: Issue['values']) =>
    issues.push({ field, severity: 'error', key, values })
  mounts.forEach((mount, index) => {
    const source = mount.folder ?? mount.source.trim()
    if (mount.folder !== undefined) {
      if (subPathFault(mount.path ?? '')) fault(`mounts[${index}].path`, 'pathAstray')
    } else if (source === '') fault(`mounts[${index}].source`, 'sourceRequired')
    else if (!source.startsWith('/')) fault(`mounts[${index}].source`, 'sourceAbsolute')
    const target = mountTarget(mount)
    const key = targetFault(mount, target)
    if (key) fault(`mounts[${index}].target`, key, { target })
    else if (source !== '' && seen.has(target)) fault(`mounts[${index}].target`, 'targetDuplicate', { target })
    if (source !== '') seen.set(target, index)
  })
  return issues
}

/** Whether a path inside of a folder leads out of it, or nowhere. */
export function subPathFault(path: string): boolean {
  const text = path.trim().replace(/\/$/, '')
  return (
    text !== '' &&
    (/[\\\p{Cc}]/u.test(text) || text.split('/').some((part) => part === '' || part === '.' || part === '..'))
  )
}

function targetFault(mount: MountRow, target: string): string | null {
  if (!/^[\w./-]*$/.test(mount.target.trim())) return 'targetCharacters'
  if (mount.folder === undefined && mount.source.trim() === '' && mount.target.trim() === '') return null
  if (target === HOME) return 'targetHome'
  const [first, second] = target.split('/').slice(1)
  if (!first || (SYSTEM.includes(first) && second === undefined)) return 'targetSystem'
  return SYSTEM_TREES.includes(first) ? 'targetSystem' : null
}
