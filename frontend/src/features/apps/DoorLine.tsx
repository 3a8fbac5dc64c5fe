import { Button } from 'antd'
import { Globe, Monitor } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Door } from '@/api/types.gen'
import { CopyButton } from '@/ui/CopyButton'
import css from './apps.module.css'

export interface DoorLineProps {
  door: Door
  title: string
  onClose: () => void
}

/** The port of this computer that leads to an app: for whom it is open, its addresses, and the button that closes it. */
export function DoorLine({ door, title, onClose }: DoorLineProps) {
  const { t } = useTranslation('apps')
  // The first address is this computer's own name for it; others know it by the rest.
  const addresses = door.public && door.addresses.length > 1 ? door.addresses.slice(1) : door.addresses
  const Sign = door.public ? Globe : Monitor
  return (
    <div className={css.door} data-public={door.public}>
      <div className={css.doorHead}>
        <Sign size={13} aria-hidden />
        <b>{t(door.public ? 'door.public' : 'door.own', { port: door.port })}</b>
        <Button size="small" aria-label={t('door.close', { title })} onClick={onClose}>
          {t('door.closeShort')}
        </Button>
      </div>
      {addresses.map((address) => (
        <div key={address} className={css.address}>
          <code>{address}</code>
          <CopyButton text={address} label={t('door.copy', { address })} />
        </div>
      ))}
    </div>
  )
}
