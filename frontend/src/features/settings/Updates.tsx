import { App, Button } from 'antd'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { asProblem, call } from '@/api/client'
import { useUpdates } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { Offer } from '@/api/types.gen'
import { messageText } from '@/lib/phrases'
import { formatRelative, past } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import css from './settings.module.css'

function useSaid(offer: Offer): string {
  const { t } = useTranslation('settings')
  const now = useNow()
  if (!offer.address) return t('updates.none')
  if (offer.problem) return messageText(offer.problem)
  if (offer.newer) return messageText({ said: offer.advice })
  if (!offer.asked) return t('updates.never')
  return t('updates.current', { when: formatRelative(past(offer.asked, now), now) })
}

function Found({ offer }: { offer: Offer }) {
  const { t } = useTranslation('settings')
  const { message } = App.useApp()
  const client = useQueryClient()
  const check = useMutation({
    mutationFn: () => call('updates-check'),
    onSuccess: (found) => client.setQueryData(keys.updates, found),
    onError: (error) => void message.error(asProblem(error).message),
  })
  const said = useSaid(offer)
  const { address, newer } = offer
  return (
    <div className={css.card}>
      <div className={css.row}>
        <div className={css.words}>
          <div className={css.label}>
            {newer ? t('updates.newer', { version: newer.version, date: newer.date }) : t('updates.title')}
          </div>
          <div className={css.text} role="status">
            {said}
          </div>
        </div>
        <Button size="small" disabled={!address} loading={check.isPending} onClick={() => check.mutate()}>
          {t('updates.check')}
        </Button>
      </div>
      {newer ? <pre className={css.log}>{newer.notes}</pre> : null}
    </div>
  )
}

/** Whether there is a newer version, what changed in it, and how this copy is upgraded. */
export function Updates() {
  const offer = useUpdates().data
  return offer ? <Found offer={offer} /> : null
}
