import { Suspense } from 'react'
import { useLocation, useNavigate, useParams } from 'react-router'
import { useAgents, useMachines } from '@/api/hooks'
import { lacksDocker } from '@/features/demo/lacksDocker'
import { SeeDemo } from '@/features/demo/SeeDemo'
import { SessionsPage } from '@/features/sessions/SessionsPage'
import { StartOffers } from '@/features/start/StartOffers'
import { part } from '@/lib/lazily'
import { recentAddress } from '../addresses'
import { useLaunchSpec } from '../useLaunchSpec'

const SessionDrawer = part(() => import('@/features/session/SessionDrawer'), 'SessionDrawer')

/** The list, and over it the detail of the session that the address names. */
export function SessionsRoute() {
  const { id } = useParams()
  const { search } = useLocation()
  const navigate = useNavigate()
  const launch = useLaunchSpec()
  const local = useAgents().data?.find((a) => a.local)?.name
  const offered = lacksDocker(useMachines().data?.find((m) => m.agent === local))
  const close = () => {
    // What the drawer showed, and how, belongs to this one session.
    const params = new URLSearchParams(
      [...new URLSearchParams(search)].filter(
        ([name]) => name !== 'view' && name !== 'kernel' && !name.startsWith('h.'),
      ),
    )
    void navigate({ pathname: '/sessions', search: params.toString() })
  }
  return (
    <>
      <SessionsPage
        openId={id}
        start={<StartOffers centred review={recentAddress} />}
        offer={offered ? <SeeDemo /> : null}
      />
      <Suspense fallback={null}>
        {id ? (
          <SessionDrawer id={id} onClose={close} onAgain={(session) => void launch({ ...session.spec, name: '' })} />
        ) : null}
      </Suspense>
    </>
  )
}
