import { useMutation, useQueryClient } from '@tanstack/react-query'
import { App } from 'antd'
import { useCallback, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { applyAnswer, type SessionBook } from '@/api/book'
import { asProblem, call } from '@/api/client'
import { useSessionBook, useSettings } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { Launched } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { hintText, messageText } from '@/lib/phrases'
import { type AppTab, noTab, openAppTab } from '@/lib/tab'
import { type Awaited, awaitedBefore, forgetAwaited, openWhenReady } from './follow'
import type { Offer } from './offers'

/** The notebook that a new start shows. */
const firstNotebook = 'Untitled.ipynb'

/** Opens the Jupyter of a session that is on its way, and says in its tab what it waits for. */
function useOpening(): (wish: Awaited, tab: AppTab) => void {
  const { t } = useTranslation('start')
  const client = useQueryClient()
  const { notification } = App.useApp()
  const { openApps } = useSessionActions()
  return useCallback(
    (wish, tab) => {
      const opened = openWhenReady(client, wish, tab, {
        told: ({ status, pull }) => {
          const percent = pull && pull.total > 0 ? Math.floor((100 * pull.current) / pull.total) : 0
          if (status === 'RUNNING') tab.say(t('tab.app'))
          else if (status === 'PULLING') tab.say(t('tab.pulling', { percent }))
          else tab.say(t(status === 'PENDING' ? 'tab.waiting' : 'tab.preparing'))
        },
        missing: ({ id, name }) => {
          notification.warning({ title: t('missing', { name }), description: t('missingText') })
          openApps(id)
        },
      })
      opened.catch((error: unknown) => {
        const problem = asProblem(error)
        notification.error({ title: messageText(problem), description: hintText(problem) })
      })
    },
    [client, notification, openApps, t],
  )
}

/** Goes on with what was awaited when the page was loaded anew. Its tab is gone, so a link leads to the app. */
export function useAwaited(): void {
  const open = useOpening()
  const [before] = useState(awaitedBefore)
  const client = useQueryClient()
  const known = useSessionBook().data !== undefined
  useEffect(() => {
    if (!known) return
    const book = client.getQueryData<SessionBook>(keys.sessions)
    for (const wish of before) {
      if (book?.[wish.session]) open(wish, noTab)
      else forgetAwaited(wish.session)
    }
    // Once for each page: the list changes, and what is begun later is followed from its beginning.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [known])
}

interface Start {
  /** waits: it has to wait for something before it starts, so that a tab would stay empty. */
  start: (offer: Offer, waits: boolean) => void
  /** The key of the offer that is being launched. */
  busy: string | undefined
}

/** Starts what was offered, shows it in the list, and opens its Jupyter when it is ready. */
export function useStart(): Start {
  const { t } = useTranslation('start')
  const client = useQueryClient()
  const navigate = useNavigate()
  const { notification } = App.useApp()
  const opens = useSettings().data?.openApps ?? true
  const open = useOpening()
  const launch = useMutation({
    mutationFn: async ({ offer: { spec, count, owner } }: { offer: Offer; tab: AppTab }): Promise<Launched[]> => {
      const body = { key: crypto.randomUUID(), spec, ...(owner === '' ? {} : { owner }) }
      return count > 1
        ? call('launch-many', { body: { ...body, count } })
        : [{ session: await call('launch', { body }) }]
    },
    onSuccess: (launched, { offer, tab }) => {
      for (const { session } of launched) if (session) applyAnswer(client, session)
      const problem = launched.find((one) => one.problem)?.problem
      if (problem) notification.warning({ title: messageText(problem), description: hintText(problem) })
      const session = launched[0]?.session
      if (session && offer.jupyter && opens) {
        open({ session: session.id, file: offer.kind === 'new' ? firstNotebook : '' }, tab)
      } else tab.close()
      void navigate('/sessions')
    },
    onError: (error, { tab }) => {
      tab.close()
      const problem = asProblem(error)
      const wrong = problem.fields.map((field) => messageText(field)).join(' ')
      notification.error({
        title: t('failed'),
        description: [wrong || messageText(problem), hintText(problem)].filter(Boolean).join(' '),
      })
    },
  })
  const { mutate } = launch
  const start = useCallback(
    (offer: Offer, waits: boolean) => {
      const asked = offer.jupyter !== '' && (opens || offer.session !== undefined)
      // The click itself opens the tab, which no popup blocker minds.
      const tab = asked && !waits ? openAppTab(t(`app.${offer.jupyter as 'lab'}`), t('tab.preparing')) : noTab
      if (offer.session) open({ session: offer.session.id, file: '' }, tab)
      else mutate({ offer, tab })
    },
    [mutate, open, opens, t],
  )
  return { start, busy: launch.isPending ? launch.variables.offer.key : undefined }
}
