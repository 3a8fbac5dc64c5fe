import { vi } from 'vitest'
import { renderView } from '@/api/testing/render'
import { FoldersPage } from '../FoldersPage'

/** Shows the Folders page, of which no link and no drop asks anything, with what is known already. */
export function showFolders(known: NonNullable<Parameters<typeof renderView>[1]>['known']) {
  return renderView(
    <FoldersPage
      project=""
      reopen=""
      dropped={null}
      onDropTaken={vi.fn()}
      onReopened={vi.fn()}
      onOpen={vi.fn()}
      onLaunch={vi.fn()}
    />,
    { known },
  )
}
