import { Alert, Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { Refused } from './api'
import { FormatError } from './nbformat'

/** What went wrong, in one sentence, with what can be done. */
export function Failure({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const { t } = useTranslation()
  const text =
    error instanceof FormatError ? t(`format_${error.reason}`) : error instanceof Error ? error.message : String(error)
  const hint = error instanceof FormatError ? t('formatHint') : error instanceof Refused ? error.hint : ''
  return (
    <Alert
      type="error"
      showIcon
      title={text}
      description={hint || undefined}
      action={
        <Button size="small" onClick={onRetry}>
          {t('retry')}
        </Button>
      }
    />
  )
}
