import { useNavigate, useSearchParams } from 'react-router'
import { LinkPage } from '@/features/recipes/LinkPage'
import { useLaunchSpec } from '../useLaunchSpec'

/** A slipway:// link, which asks before anything happens. */
export function LinkRoute() {
  const [params] = useSearchParams()
  const navigate = useNavigate()
  const launch = useLaunchSpec()
  return (
    <LinkPage
      url={params.get('url')}
      onLeave={() => void navigate('/sessions', { replace: true })}
      onReview={(spec) => void launch(spec)}
      onOpen={(id) => void navigate(`/sessions/${id}`, { replace: true })}
      onProject={(address) => void navigate(`/folders?${new URLSearchParams({ project: address })}`, { replace: true })}
    />
  )
}
