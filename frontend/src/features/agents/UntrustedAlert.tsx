import { Alert } from 'antd'
import { useTranslation } from 'react-i18next'
import type { Agent } from '@/api/types.gen'
import { RelativeTime } from '@/ui/Times'

/** An agent that sends what no agent may send: what was wrong, and what to do. */
export function UntrustedAlert({ agent, brief = false }: { agent: Agent; brief?: boolean }) {
  const { t } = useTranslation('agents')
  const { untrusted } = agent
  if (!untrusted) return null
  const details = (
    <>
      <div>{untrusted.error.message}</div>
      <div>{t('untrusted.hint')}</div>
      <div>
        <code>{untrusted.error.code}</code> · {t('untrusted.times', { count: untrusted.count })} ·{' '}
        <RelativeTime at={untrusted.last} />
      </div>
    </>
  )
  return <Alert type="error" showIcon title={t('untrusted.title')} description={brief ? null : details} />
}
