import { LauncherPage } from '@/features/launcher/LauncherPage'
import { OpenRecipe } from '@/features/recipes/OpenRecipe'
import { RecipeDrop } from '@/features/recipes/RecipeDrop'
import { useLaunchFile } from '../useLaunchSpec'

/** The launcher, on all of which a recipe may be dropped. */
export function LauncherRoute() {
  const launch = useLaunchFile()
  return (
    <RecipeDrop onRead={launch}>
      <LauncherPage tools={<OpenRecipe onRead={launch} />} />
    </RecipeDrop>
  )
}
