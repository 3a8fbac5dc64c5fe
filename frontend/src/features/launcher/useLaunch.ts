import { useMutation, useQueryClient } from '@tanstack/react-query'
import { App } from 'antd'
import { createElement, useCallback, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { applyAnswer } from '@/api/book'

import { ApiProblem, asProblem, call } from '@/api/client'
import type { Launched } from '@/api/types.gen'
import { keepingHome } from './home'
import { NoMount } from './NoMount'
import type { Refusal } from './useJudgement'

export interface LaunchUse {
  /** owner is the person for whom it is launched; empty: oneself. It asks first where the home would be lost. */
  launch: (spec: string, losesHome: boolean, count: number, owner: string) => void
  busy: boolean
  /** The fields that the server refused, with the spec that it refused. */
  refusal: Refusal | null
  /** Why it was refused where no field is to blame. */
  failure: ApiProblem | null
}

interface Order {
  spec: string
  count: number
  owner: string
}

/** Launches, once, whatever happens on the way: a second try with the same spec carries the same key. */
export function useLaunch(onLaunched: () => void): LaunchUse {
  const { t } = useTranslation('launcher')
  const { modal, notification } = App.useApp()
  const navigate = useNavigate()
  const client = useQueryClient()
  const key = useRef({ spec: '', key: '' })
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const { mutate, isPending, error } = useMutation({
    mutationFn: async ({ spec, count, owner }: Order): Promise<Launched[]> => {
      const asked = `${count} ${owner} ${spec}`
      if (key.current.spec !== asked) key.current = { spec: asked, key: crypto.randomUUID() }
      const body = { key: key.current.key, spec: JSON.parse(spec), ...(owner === '' ? {} : { owner }) }
      return count > 1
        ? call('launch-many', { body: { ...body, count } })
        : [{ session: await call('launch', { body }) }]
    },
    onMutate: () => setRefusal(null),
    onSuccess: (launched) => {
      const problems = launched.flatMap(({ problem }) => problem ?? [])
      for (const { session } of launched) if (session) applyAnswer(client, session)
      const [first] = problems
      if (first) {
        notification.warning({
          title: t('many.failed', { count: problems.length, total: launched.length }),
          description: [first.message, first.hint].filter(Boolean).join(' '),
          duration: 0,
        })
        key.current = { spec: '', key: '' }
        if (problems.length === launched.length) return
      }
      onLaunched()
      void navigate('/sessions')
    },
    onError: (problem, { spec }) => {
      if (!(problem instanceof ApiProblem)) return
      setRefusal({ spec, fields: problem.fields, at: Date.now() })
      if (problem.status !== 0) key.current = { spec: '', key: '' }
    },
  })
  const launch = useCallback(
    (spec: string, losesHome: boolean, count: number, owner: string) => {
      if (!losesHome) {
        mutate({ spec, count, owner })
        return
      }
      let keeps = false
      modal.confirm({
        title: t('noMount.title'),
        content: createElement(NoMount, { onKeep: (keep) => (keeps = keep) }),
        okText: t('noMount.yes'),
        cancelText: t('noMount.no'),
        onOk: () => mutate({ spec: keeps ? keepingHome(spec) : spec, count, owner }),
      })
    },
    [modal, mutate, t],
  )
  const problem = error ? asProblem(error) : null
  return { launch, busy: isPending, refusal, failure: problem && problem.fields.length === 0 ? problem : null }
}
