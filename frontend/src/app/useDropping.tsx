import { useOutletContext } from 'react-router'
import type { Folder } from '@/api/types.gen'
import type { Picked } from '@/features/files/picked'
import { UploadList } from '@/features/files/UploadList'
import { useUploads } from '@/features/files/useFiles'
import type { Dropped } from '@/features/folders/opening'
import type { Dropping } from './ProjectDrop'

/** The directory that was dropped, for the page that opens it as a project; null: none. */
export function useDropping(): { dropped: Dropped | null; onTaken: () => void } {
  const { drop, onTaken } = useOutletContext<Dropping>()
  const { items, uploads } = useUploads()
  if (!drop || 'path' in drop) return { dropped: drop, onTaken }
  // What is uploaded is what is in the directory: the folder takes its place.
  const picked: Picked[] = drop.picked
    .map((one) => ({ ...one, dirs: one.dirs.slice(1) }))
    .filter((one) => one.file || one.dirs.length > 0)
  const files = picked.flatMap((one) => one.file ?? [])
  const dropped = {
    name: drop.name,
    count: files.length,
    bytes: files.reduce((sum, file) => sum + file.size, 0),
    upload: (folder: Folder) => uploads.add({ folder: folder.id }, '', picked),
    stateOf: (folder: Folder) => {
      const states = items.filter((i) => 'folder' in i.place && i.place.folder === folder.id).map((i) => i.status)
      if (states.some((s) => s === 'sending' || s === 'waiting' || s === 'asking')) return 'sending' as const
      return states.every((s) => s === 'done') ? ('whole' as const) : ('partly' as const)
    },
    listOf: (folder: Folder) => <UploadList place={{ folder: folder.id }} />,
  }
  return { dropped, onTaken }
}
