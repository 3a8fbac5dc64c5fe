import type { App } from '@/api/types.gen'

/** Whether an app is one of the ports that were asked for. */
export const isPort = (app: Pick<App, 'id'>): boolean => /^port-\d+$/.test(app.id)

/** What an app opens as: apps first by name, then the ports by number. */
export function sortApps(apps: readonly App[]): { apps: App[]; ports: App[] } {
  return {
    apps: apps.filter((app) => !isPort(app)).toSorted((a, b) => a.title.localeCompare(b.title)),
    ports: apps.filter(isPort).toSorted((a, b) => a.port - b.port),
  }
}
