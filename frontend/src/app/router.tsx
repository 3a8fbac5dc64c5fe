import type { ComponentType } from 'react'
import { createBrowserRouter, Navigate } from 'react-router'
import { lazily } from '@/lib/lazily'
import { NotFound, RouteCrash } from './RouteCrash'
import { Shell } from './Shell'
import { ShellSkeleton } from './ShellSkeleton'

/** A page that comes when the router goes to it. */
function page<N extends string>(load: () => Promise<Record<N, ComponentType>>, name: N) {
  return async () => ({ Component: (await lazily(load))[name] })
}

const sessions = page(() => import('./pages/SessionsRoute'), 'SessionsRoute')
const services = page(() => import('@/features/services/ServicesPage'), 'ServicesPage')
const folders = page(() => import('./pages/FoldersRoute'), 'FoldersRoute')
const agents = page(() => import('@/features/agents/AgentsPage'), 'AgentsPage')

/** The pages. Each comes in its own chunk; the session's drawer lies over the list, so both share a route. */
export function makeRouter() {
  // The first page comes while the shell is drawn; should that fail, the route asks again and tells.
  if (location.pathname === '/') void sessions().catch(() => undefined)
  return createBrowserRouter([
    {
      element: <Shell />,
      errorElement: <RouteCrash />,
      hydrateFallbackElement: <ShellSkeleton />,
      children: [
        {
          errorElement: <RouteCrash />,
          children: [
            { index: true, element: <Navigate to="/sessions" replace /> },
            { path: 'sessions', lazy: sessions },
            { path: 'sessions/:id', lazy: sessions },
            {
              path: 'sessions/:id/terminal',
              lazy: page(() => import('@/features/terminal/TerminalPage'), 'TerminalPage'),
            },
            { path: 'services', lazy: services },
            { path: 'services/new', lazy: page(() => import('@/features/services/NewServicePage'), 'NewServicePage') },
            { path: 'services/:name', lazy: services },
            { path: 'playground', lazy: page(() => import('@/features/playground/PlaygroundPage'), 'PlaygroundPage') },
            { path: 'launcher', lazy: page(() => import('./pages/LauncherRoute'), 'LauncherRoute') },
            { path: 'link', lazy: page(() => import('./pages/LinkRoute'), 'LinkRoute') },
            { path: 'folders', lazy: folders },
            { path: 'folders/:id', lazy: folders },
            { path: 'images', lazy: page(() => import('@/features/images/ImagesPage'), 'ImagesPage') },
            { path: 'gpus', lazy: page(() => import('@/features/gpus/GpusPage'), 'GpusPage') },
            { path: 'usage', lazy: page(() => import('@/features/usage/UsagePage'), 'UsagePage') },
            { path: 'agents', lazy: agents },
            { path: 'agents/:name', lazy: agents },
            { path: 'settings', lazy: page(() => import('@/features/settings/SettingsPage'), 'SettingsPage') },
            { path: 'log', lazy: page(() => import('@/features/settings/LogPage'), 'LogPage') },
            { path: 'licenses', lazy: page(() => import('@/features/settings/LicensesPage'), 'LicensesPage') },
            { path: '*', element: <NotFound /> },
          ],
        },
      ],
    },
  ])
}
