import { Suspense, useCallback, useEffect, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Outlet, useLocation, useMatch, useNavigate, useSearchParams } from 'react-router'
import { useLoggedOut } from '@/api/hooks'
import { DemoCorner } from '@/features/demo/DemoBadge'
import { useDemo } from '@/features/demo/useDemo'
import { NoticeDock, ReclaimDock } from '@/features/notifications/NoticeDock'
import { NoticesProvider } from '@/features/notifications/NoticesProvider'
import { OpenRecipe } from '@/features/recipes/OpenRecipe'
import type { RecipeFile } from '@/features/recipes/useRecipeFile'
import { useAwaited } from '@/features/start/useStart'
import { stepsOf } from '@/features/tour/steps'
import { part } from '@/lib/lazily'
import { platformOf } from '@/lib/platform'
import { markShown } from '@/lib/shown'
import { recentAddress } from './addresses'
import { CommandPalette, Keys } from './Commands'
import { ConnectionBanner } from './ConnectionBanner'
import { Header } from './Header'
import { LidBanner } from './LidBanner'
import { LoggedOut } from './LoggedOut'
import { MachineBanner } from './MachineBanner'
import { ProjectDrop, useDrops } from './ProjectDrop'
import { Rail } from './Rail'
import { SessionActionsProvider } from './SessionActionsProvider'
import css from './Shell.module.css'
import type { Over } from './useCommands'
import { useKeys } from './useKeys'
import { useLaunchFile } from './useLaunchSpec'
import { useTitle } from './useTitle'
import { useWindowGo } from './useWindowGo'

const NoticesDrawer = part(() => import('@/features/notifications/NoticesDrawer'), 'NoticesDrawer')
const Tour = part(() => import('@/features/tour/Tour'), 'Tour')
const RecentsModal = part(() => import('@/features/history/RecentsModal'), 'RecentsModal')

const mac = platformOf(navigator.userAgent) === 'mac'

/** Follows the sessions for the whole page, of which nothing is drawn again for it. */
function Follower({ session }: { session: string | undefined }) {
  useTitle(session)
  useAwaited()
  return null
}

function Frame() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const [over, setOver] = useState<Over | undefined>()
  const detail = useMatch('/sessions/:id')
  const terminal = useMatch('/sessions/:id/terminal')
  useKeys(setOver, mac)
  useWindowGo()
  useEffect(() => markShown('shell'), [])
  const drops = useDrops()
  const close = () => setOver(undefined)
  const steps = stepsOf(useDemo())
  const visit = useCallback((path: string) => void navigate(path), [navigate])
  const launch = useLaunchFile()
  const launchFile = (file: RecipeFile) => {
    close()
    launch(file)
  }
  return (
    <>
      <a className={css.skip} href="#content">
        {t('nav.skip')}
      </a>
      <div className={css.shell}>
        <Rail />
        <Header
          onNotices={() => setOver('notices')}
          onRecents={() => setOver('recents')}
          onPalette={() => setOver('palette')}
          onTour={() => setOver('tour')}
          mac={mac}
        />
        <main id="content" className={css.main} tabIndex={-1} data-page={pathname}>
          <ConnectionBanner />
          <LidBanner />
          <MachineBanner />
          <div className={css.page}>
            <Outlet context={drops.dropping} />
          </div>
          <NoticeDock hide={terminal?.params.id ?? detail?.params.id} onMore={() => setOver('notices')} />
        </main>
      </div>
      <ProjectDrop onDrop={drops.take} />
      <Follower session={detail?.params.id ?? terminal?.params.id} />
      <Suspense fallback={null}>
        {over === 'notices' ? <NoticesDrawer onClose={close} /> : null}
        {over === 'palette' ? <CommandPalette onShow={setOver} onClose={close} mac={mac} /> : null}
        {over === 'tour' ? <Tour steps={steps} onVisit={visit} onClose={close} /> : null}
        {over === 'keys' ? <Keys onClose={close} mac={mac} /> : null}
        {over === 'recents' ? (
          <RecentsModal
            open={<OpenRecipe onRead={launchFile} />}
            onClose={close}
            onUse={(id) => {
              close()
              void navigate(recentAddress(id))
            }}
          />
        ) : null}
      </Suspense>
    </>
  )
}

function Content() {
  const terminal = useMatch('/sessions/:id/terminal')
  const [params] = useSearchParams()
  // A terminal in a window of its own needs no frame.
  if (!terminal || params.get('window') !== '1') return <Frame />
  return (
    <div className={css.alone}>
      <div className={css.page}>
        <Outlet />
      </div>
      <ReclaimDock />
      <DemoCorner />
    </div>
  )
}

/** Keeps what it holds as it is when only the connection changes. */
function LoggedIn({ children }: { children: ReactNode }) {
  return useLoggedOut() ? <LoggedOut /> : children
}

/** The frame around every page: rail, header, the page itself, and what lies over it. */
export function Shell() {
  return (
    <LoggedIn>
      <SessionActionsProvider>
        <NoticesProvider>
          <Content />
        </NoticesProvider>
      </SessionActionsProvider>
    </LoggedIn>
  )
}
