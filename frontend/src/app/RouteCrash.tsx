import { Button } from 'antd'
import { Compass } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link, useRouteError } from 'react-router'
import { asProblem } from '@/api/client'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'

/** What is shown in place of a view that threw. */
export function RouteCrash() {
  const { t } = useTranslation()
  const problem = asProblem(useRouteError())
  return (
    <ErrorState
      problem={{ message: t('problem.crashTitle'), hint: problem.message, code: problem.code }}
      onRetry={() => location.reload()}
    />
  )
}

export function NotFound() {
  const { t } = useTranslation()
  return (
    <>
      <h1 className="unseen">{t('problem.notFoundTitle')}</h1>
      <EmptyState icon={Compass} title={t('problem.notFoundTitle')} text={t('problem.notFoundText')}>
        <Link to="/sessions">
          <Button type="primary">{t('problem.toSessions')}</Button>
        </Link>
      </EmptyState>
    </>
  )
}
