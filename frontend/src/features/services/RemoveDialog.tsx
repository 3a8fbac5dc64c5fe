import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useRemoveService } from '@/api/services'
import type { Service } from '@/api/types.gen'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'

interface RemoveDialogProps {
  service: Service
  onClose: () => void
  onRemoved: () => void
}

/** Asks before a service is removed, and says what happens to its replicas, revisions and tokens. */
export function RemoveDialog({ service, onClose, onRemoved }: RemoveDialogProps) {
  const { t } = useTranslation(['services', 'common'])
  const remove = useRemoveService(service)
  return (
    <Dialog
      title={t('services:remove.title', { name: service.name })}
      okText={t('services:remove.go')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ danger: true, loading: remove.isPending }}
      onOk={() => remove.mutate(undefined, { onSuccess: onRemoved })}
      onCancel={onClose}
    >
      <p>{t('services:remove.text')}</p>
      {service.traffic.outstanding > 0 ? (
        <p>{t('services:remove.outstanding', { count: service.traffic.outstanding })}</p>
      ) : null}
      {remove.error ? <ErrorState compact problem={asProblem(remove.error)} /> : null}
    </Dialog>
  )
}
