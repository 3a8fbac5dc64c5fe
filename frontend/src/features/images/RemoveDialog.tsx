import { useTranslation } from 'react-i18next'
import { call } from '@/api/client'

import { useStartOperation } from '@/api/useOperation'
import { formatBytes } from '@/lib/bytes'
import { Dialog } from '@/ui/Dialog'
import css from './images.module.css'
import { type ImageRow, nameOf } from './rows'

/** Asks before an image goes. */
export function RemoveDialog({ row, agent, onClose }: { row: ImageRow; agent: string; onClose: () => void }) {
  const { t } = useTranslation(['images', 'common'])
  const start = useStartOperation()
  const go = async () => {
    if (await start(() => call('image-remove', { body: { images: [row.image.id], agent } }))) onClose()
  }
  return (
    <Dialog
      width={460}
      title={t('images:removeTitle', { name: nameOf(row.image) || t('images:unnamed') })}
      okText={t('images:remove')}
      okButtonProps={{ danger: true, type: 'primary' }}
      cancelText={t('common:action.cancel')}
      onOk={() => void go()}
      onCancel={onClose}
    >
      <p className={css.text}>{t('images:removeText', { amount: formatBytes(row.alone ?? 0) })}</p>
      {row.image.refs.length > 0 ? <code className={css.wrap}>{row.image.refs.join(', ')}</code> : null}
    </Dialog>
  )
}
