import { Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useOperations } from '@/api/hooks'
import type { Operation } from '@/api/types.gen'
import { useOperationActions } from '@/api/useOperation'
import { isRunning } from '@/lib/operation'
import { OperationView } from '@/ui/OperationView'
import css from './images.module.css'

/** What goes on with the images of a machine, and what failed until it is dismissed. */
export function Works({ agent, onAgain }: { agent: string; onAgain: (image: string) => void }) {
  const [dismissed, setDismissed] = useState<ReadonlySet<string>>(new Set())
  const works = (useOperations().data ?? []).filter(
    (o) =>
      o.kind.startsWith('image-') &&
      o.agent === agent &&
      (isRunning(o) || (o.state === 'failed' && !dismissed.has(o.id))),
  )
  if (works.length === 0) return null
  return (
    <div className={css.works}>
      {works.map((operation) => (
        <Work
          key={operation.id}
          operation={operation}
          onAgain={onAgain}
          onDismiss={() => setDismissed((old) => new Set(old).add(operation.id))}
        />
      ))}
    </div>
  )
}

function Work({
  operation,
  onAgain,
  onDismiss,
}: {
  operation: Operation
  onAgain: (image: string) => void
  onDismiss: () => void
}) {
  const { t } = useTranslation('images')
  const actions = useOperationActions(operation.id)
  const again = operation.kind === 'image-pull' ? operation.image : undefined
  return (
    <div className={css.work}>
      <div className={css.workTitle}>{operation.image ?? operation.subject}</div>
      <OperationView operation={operation} {...actions} />
      {isRunning(operation) ? null : (
        <div className={css.workFoot}>
          <Button size="small" onClick={onDismiss}>
            {t('dismiss')}
          </Button>
          {again ? (
            <Button
              size="small"
              onClick={() => {
                onDismiss()
                onAgain(again)
              }}
            >
              {t('again')}
            </Button>
          ) : null}
        </div>
      )}
    </div>
  )
}
