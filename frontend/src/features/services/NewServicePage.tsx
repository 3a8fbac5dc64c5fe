import { Skeleton } from 'antd'
import { BrainCircuit } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { asProblem } from '@/api/client'
import { useServices } from '@/api/services'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { ServiceForm } from './ServiceForm'

/** The form for a new service, or for another revision of the one that the address names. */
export function NewServicePage() {
  const { t } = useTranslation('services')
  const [params] = useSearchParams()
  const name = params.get('of')
  const on = params.get('on')
  const query = useServices()
  if (!name) return <ServiceForm of={undefined} />
  if (query.isPending) return <Skeleton active style={{ padding: 24 }} />
  if (!query.data) return <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
  const of = query.data.find((s) => s.name === name && (!on || s.agent === on))
  if (!of) return <EmptyState icon={BrainCircuit} title={t('gone.title', { name })} text={t('gone.text')} />
  return <ServiceForm key={`${of.agent}/${of.name}`} of={of} />
}
