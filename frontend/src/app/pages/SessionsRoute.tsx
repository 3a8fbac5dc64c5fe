import { lazy, Suspense } from 'react'
import { useLocation, useNavigate, useParams } from 'react-router'
import type { Session } from '@/api/types.gen'
import { SessionsPage } from '@/features/sessions/SessionsPage'
import { lazily } from '@/lib/lazily'

const SessionDrawer = lazy(async () => ({ default: (await lazily(() => import('@/features/session/SessionDrawer'))).SessionDrawer }))

/** The list, and over it the detail of the session that the address names. */
export function SessionsRoute() {
  const { id } = useParams()
  const { search } = useLocation()
  const navigate = useNavigate()
  const close = () => {
    const params = new URLSearchParams(search)
    params.delete('view')
    void navigate({ pathname: '/sessions', search: params.toString() })
  }
  // The launcher's draft is all that carries a session over to it.
  const again = async (session: Session) => {
    const [{ fromSpec }, { encodeDraft }] = await Promise.all([import('@/features/launcher/draft'), import('@/features/launcher/draftUrl')])
    const draft = encodeDraft({ ...fromSpec(session.spec, Date.now()), name: '' })
    await navigate({ pathname: '/launcher', search: new URLSearchParams({ draft, step: 'confirm' }).toString() })
  }
  return (
    <>
      <SessionsPage openId={id} />
      <Suspense fallback={null}>{id ? <SessionDrawer id={id} onClose={close} onAgain={(session) => void again(session)} /> : null}</Suspense>
    </>
  )
}
