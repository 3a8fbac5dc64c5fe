import { LauncherPage } from '@/features/launcher/LauncherPage'

export function LauncherRoute() {
  return <LauncherPage />
}
