import { Button } from 'antd'
import { Archive } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useOperations } from '@/api/hooks'
import type { Operation } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { isRunning } from '@/lib/operation'
import { ProgressLine } from '@/ui/OperationView'
import css from './files.module.css'

/** The archives that are being made and fetched, each with how far it is. */
export function Archives() {
  const { t } = useTranslation('files')
  const under = useOperations().data?.filter((o) => o.kind === 'file-archive' && isRunning(o)) ?? []
  if (under.length === 0) return null
  return (
    <section className={css.uploads} aria-label={t('archives')}>
      {under.map((one) => (
        <Line key={one.id} operation={one} />
      ))}
    </section>
  )
}

function Line({ operation }: { operation: Operation }) {
  const { t } = useTranslation(['files', 'common'])
  const { onCancel } = useOperationActions(operation.id)
  const title = t('files:archiving', { name: operation.subject })
  return (
    <div className={css.uploadsHead}>
      <Archive size={15} aria-hidden />
      <span className={css.uploadName}>{title}</span>
      <div className={css.archive}>
        {operation.progress ? <ProgressLine progress={operation.progress} label={title} /> : null}
      </div>
      <Button size="small" onClick={() => void onCancel()}>
        {t('common:action.cancel')}
      </Button>
    </div>
  )
}
