import { Drawer } from 'antd'
import { Suspense } from 'react'
import type { Folder } from '@/api/types.gen'
import { part } from '@/lib/lazily'

const Explorer = part(() => import('@/features/files/Explorer'), 'Explorer')

interface FolderFilesProps {
  folder: Folder
  dir: string
  onVisit: (dir: string) => void
  onClose: () => void
  /** What is behind it stays in reach. */
  beside?: boolean
}

/** The files of a folder. */
export function FolderFiles({ folder, dir, onVisit, onClose, beside = false }: FolderFilesProps) {
  return (
    <Drawer
      open
      mask={!beside}
      size={820}
      title={folder.name}
      onClose={onClose}
      styles={{ body: { padding: 0, overflow: 'hidden' } }}
    >
      <Suspense fallback={null}>
        <Explorer
          place={{ folder: folder.id }}
          root={folder.name}
          dir={dir}
          onVisit={onVisit}
          readOnly={folder.permission === 'ro' || folder.state !== 'ready'}
        />
      </Suspense>
    </Drawer>
  )
}
