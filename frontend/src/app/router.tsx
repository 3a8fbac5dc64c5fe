import { createBrowserRouter, Navigate } from 'react-router'
import { lazily } from '@/lib/lazily'
import { NotFound, RouteCrash } from './RouteCrash'
import { Shell } from './Shell'
import { ShellSkeleton } from './ShellSkeleton'

const sessionsRoute = async () => ({ Component: (await lazily(() => import('./pages/SessionsRoute'))).SessionsRoute })

/** The pages. Each comes in its own chunk; the session's drawer lies over the list, so both share a route. */
export function makeRouter() {
  // The first page comes while the shell is drawn; should that fail, the route asks again and tells.
  if (location.pathname === '/') void sessionsRoute().catch(() => undefined)
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
            { path: 'sessions', lazy: sessionsRoute },
            { path: 'sessions/:id', lazy: sessionsRoute },
            {
              path: 'sessions/:id/terminal',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/terminal/TerminalPage'))).TerminalPage,
              }),
            },
            {
              path: 'services',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/services/ServicesPage'))).ServicesPage,
              }),
            },
            {
              path: 'services/new',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/services/NewServicePage'))).NewServicePage,
              }),
            },
            {
              path: 'services/:name',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/services/ServicesPage'))).ServicesPage,
              }),
            },
            {
              path: 'playground',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/playground/PlaygroundPage'))).PlaygroundPage,
              }),
            },
            {
              path: 'launcher',
              lazy: async () => ({ Component: (await lazily(() => import('./pages/LauncherRoute'))).LauncherRoute }),
            },
            {
              path: 'link',
              lazy: async () => ({ Component: (await lazily(() => import('./pages/LinkRoute'))).LinkRoute }),
            },
            {
              path: 'folders',
              lazy: async () => ({ Component: (await lazily(() => import('./pages/FoldersRoute'))).FoldersRoute }),
            },
            {
              path: 'folders/:id',
              lazy: async () => ({ Component: (await lazily(() => import('./pages/FoldersRoute'))).FoldersRoute }),
            },
            {
              path: 'images',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/images/ImagesPage'))).ImagesPage,
              }),
            },
            {
              path: 'gpus',
              lazy: async () => ({ Component: (await lazily(() => import('@/features/gpus/GpusPage'))).GpusPage }),
            },
            {
              path: 'usage',
              lazy: async () => ({ Component: (await lazily(() => import('@/features/usage/UsagePage'))).UsagePage }),
            },
            {
              path: 'agents',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/agents/AgentsPage'))).AgentsPage,
              }),
            },
            {
              path: 'agents/:name',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/agents/AgentsPage'))).AgentsPage,
              }),
            },
            {
              path: 'settings',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/settings/SettingsPage'))).SettingsPage,
              }),
            },
            {
              path: 'log',
              lazy: async () => ({ Component: (await lazily(() => import('@/features/settings/LogPage'))).LogPage }),
            },
            {
              path: 'licenses',
              lazy: async () => ({
                Component: (await lazily(() => import('@/features/settings/LicensesPage'))).LicensesPage,
              }),
            },
            { path: '*', element: <NotFound /> },
          ],
        },
      ],
    },
  ])
}
