import { useState } from 'react'
import type { Folder } from '@/api/types.gen'
import { LauncherPage } from '@/features/launcher/LauncherPage'
import { OpenRecipe } from '@/features/recipes/OpenRecipe'
import { RecipeDrop } from '@/features/recipes/RecipeDrop'
import { StartOffers } from '@/features/start/StartOffers'
import { FolderFiles } from '../FolderFiles'
import { recentAddress } from '../addresses'
import { useLaunchFile } from '../useLaunchSpec'

/** The launcher, on all of which a recipe may be dropped. */
export function LauncherRoute() {
  const launch = useLaunchFile()
  return (
    <RecipeDrop onRead={launch}>
      <LauncherPage
        start={<StartOffers review={recentAddress} />}
        tools={<OpenRecipe onRead={launch} />}
        files={(folder, close) => <LauncherFiles folder={folder} onClose={close} />}
      />
    </RecipeDrop>
  )
}

/** The files of a folder that may be mounted. The address is the draft's, so the directory is kept here. */
function LauncherFiles({ folder, onClose }: { folder: Folder; onClose: () => void }) {
  const [dir, setDir] = useState('')
  return <FolderFiles folder={folder} dir={dir} onVisit={setDir} onClose={onClose} />
}
