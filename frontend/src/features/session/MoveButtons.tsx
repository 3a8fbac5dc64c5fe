import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Button } from 'antd'
import { MoveRight } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { applyAnswer } from '@/api/book'
import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { ErrorState } from '@/ui/ErrorState'
import css from './SessionDrawer.module.css'

const askEvery = 5000

/** Moves a waiting session to a machine that would start it at once. */
export function MoveButtons({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const client = useQueryClient()
  const actions = useSessionActions()
  const offers = useQuery({
    queryKey: keys.moveOffers(session.id),
    queryFn: ({ signal }) => call('move-offers', { path: { id: session.id }, signal }),
    enabled: !session.lastHeard,
    refetchInterval: askEvery,
    retry: false,
  })
  const move = useMutation({
    mutationFn: (agent: string) => call('move', { path: { id: session.id }, body: { agent } }),
    onSuccess: (moved) => {
      applyAnswer(client, moved)
      actions.showDetail(moved.id)
    },
  })
  const ready = offers.data?.filter((offer) => !offer.wait) ?? []
  if (ready.length === 0 && !move.error) return null
  return (
    <div className={css.noticeButtons}>
      {ready.map(({ agent, pulls }) => (
        <Button
          key={agent}
          size="small"
          icon={<MoveRight size={14} />}
          loading={move.isPending && move.variables === agent}
          disabled={move.isPending}
          onClick={() => move.mutate(agent)}
        >
          {t(pulls ? 'move.afterPull' : 'move.now', { agent })}
        </Button>
      ))}
      {move.error ? <ErrorState compact problem={asProblem(move.error)} /> : null}
    </div>
  )
}
