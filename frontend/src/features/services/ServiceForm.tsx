import { Button } from 'antd'
import { TriangleAlert } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate, useSearchParams } from 'react-router'
import { asProblem } from '@/api/client'
import { useAgents, useDevices } from '@/api/hooks'
import { runtimeIds } from '@/api/runtimes.gen'
import { useDeployService, useServices } from '@/api/services'
import type { Service } from '@/api/types.gen'
import { messageText } from '@/lib/phrases'
import { ErrorState } from '@/ui/ErrorState'
import { PageHeader } from '@/ui/PageHeader'
import { BehaviourCard } from './BehaviourCard'
import { type Draft, EMPTY, withRuntime } from './draft'
import { type Faults, ownFaults, refusedFields, without } from './faults'
import { Forecast } from './Forecast'
import css from './form.module.css'
import { ModelCard } from './ModelCard'
import { Preview } from './Preview'
import { draftOf, requestFor } from './request'
import { ResourcesCard } from './ResourcesCard'
import { RuntimeCard } from './RuntimeCard'
import { ScalingCard } from './ScalingCard'
import { ServerCard } from './ServerCard'
import { addressOf, currentRevision } from './states'

const none: never[] = []

/** What a card of the form is given. */
export interface CardProps {
  draft: Draft
  faults: Faults
  change: (change: Partial<Draft>) => void
  /** Of the smallest device of the machine, in bytes; 0: unknown. */
  deviceMemory: number
}

interface ServiceFormProps {
  /** The service that is changed; undefined: a new one. */
  of: Service | undefined
}

/** The form for a service, beside what each of its replicas will run. */
export function ServiceForm({ of }: ServiceFormProps) {
  const { t } = useTranslation(['services', 'common'])
  const navigate = useNavigate()
  const [params, setParams] = useSearchParams()
  const services = useServices().data ?? none
  const agents = useAgents().data ?? none
  const boards = useDevices().data ?? none
  const deploy = useDeployService()
  const runtime = runtimeIds.find((id) => id === params.get('runtime')) ?? EMPTY.runtime
  const [entered, setEntered] = useState<Draft>(() => (of ? draftOf(of) : withRuntime(EMPTY, runtime)))
  const [tried, setTried] = useState(false)
  const [refused, setRefused] = useState<Faults>({})
  const form = useRef<HTMLDivElement>(null)

  const local = agents.find((agent) => agent.local)?.name ?? ''
  const draft = { ...entered, agent: entered.agent || local }
  const sizes = (boards.find((board) => board.agent === draft.agent)?.devices ?? none).map((d) => d.memory)
  const deviceMemory = sizes.length > 0 ? Math.min(...sizes) : 0
  const existing = services.find((s) => s.name === draft.name && s.agent === draft.agent)

  const base = of && currentRevision(of)?.spec

  const own = ownFaults(draft, (key) => t(`services:fault.${key}`))
  // A name is judged while it is typed; what is empty is no fault before one tries.
  const shown: Faults = { ...refused, ...(tried ? own : draft.name && own.name ? { name: own.name } : {}) }
  const problem = deploy.error ? asProblem(deploy.error) : null
  const { rest } = problem ? refusedFields(problem) : { rest: none }
  const elsewhere = problem && (problem.fields.length === 0 || rest.length > 0) && Object.keys(refused).length === 0

  const request = requestFor(draft, { existing, base })

  const change = (what: Partial<Draft>) => {
    setEntered((old) => (what.runtime ? withRuntime({ ...old, ...what }, what.runtime) : { ...old, ...what }))
    setRefused((old) => without(old, what))
    if (what.runtime && !of) setParams({ runtime: what.runtime }, { replace: true })
  }
  const go = () => {
    setTried(true)
    if (Object.keys(own).length > 0) return
    deploy.mutate(request, {
      onSuccess: (service) => void navigate(addressOf(service)),
      onError: (error) => setRefused(refusedFields(asProblem(error)).faults),
    })
  }
  // What is wrong is brought into view once it is told.
  const attempts = `${tried}${deploy.failureCount}${deploy.submittedAt}`
  useEffect(() => {
    form.current?.querySelector('[data-invalid]')?.scrollIntoView({ block: 'center' })
  }, [attempts, deploy.error])

  const card: CardProps = { draft, faults: shown, change, deviceMemory }
  return (
    <div className={css.page}>
      <div className={css.scroll}>
        <PageHeader
          title={of ? t('services:form.titleOf', { name: of.name }) : t('services:form.title')}
          note={of ? undefined : t('services:form.note')}
        />
        <div className={css.columns}>
          <div ref={form} className={css.content}>
            <RuntimeCard {...card} fixed={of !== undefined} />
            <ModelCard {...card} />
            <ServerCard {...card} />
            <ResourcesCard {...card} fixed={of !== undefined} />
            <ScalingCard {...card} />
            <BehaviourCard {...card} />
          </div>
          <aside className={css.side}>
            <Preview draft={draft} deviceMemory={deviceMemory} />
            {Object.keys(own).length === 0 ? <Forecast request={request} existing={existing} /> : null}
            {existing && !of ? (
              <p className={css.notice}>
                <TriangleAlert size={15} aria-hidden />
                <span>{t('services:form.exists', { name: existing.name, machine: existing.agent })}</span>
              </p>
            ) : null}
          </aside>
        </div>
      </div>
      <div className={css.bar}>
        {elsewhere && problem ? <ErrorState compact problem={problem} /> : null}
        {rest.length > 0 && !elsewhere ? <span className={css.bad}>{rest.map(messageText).join(' ')}</span> : null}
        {Object.keys(shown).length > 0 && rest.length === 0 && !elsewhere ? (
          <span className={css.bad}>{t('services:form.wrong', { count: Object.keys(shown).length })}</span>
        ) : null}
        <div className={css.barEnd}>
          <Button onClick={() => void navigate(of ? addressOf(of) : '/services')}>{t('common:action.cancel')}</Button>
          <Button type="primary" loading={deploy.isPending} onClick={go}>
            {existing
              ? t('services:form.revise', { number: (existing.revisions[0]?.number ?? 0) + 1 })
              : t('services:form.create')}
          </Button>
        </div>
      </div>
    </div>
  )
}
