import { Button } from 'antd'
import { Globe, Monitor, Unplug } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Door, LostDoor } from '@/api/types.gen'
import { CopyButton } from '@/ui/CopyButton'
import css from './apps.module.css'

interface DoorLineProps {
  door: Door
  title: string
  onClose: () => void
}

/**
 * The port of this computer that leads to an app: for whom it is open, its addresses, and the button that closes it.
 */
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

interface LostDoorLineProps {
  door: LostDoor
  title: string
  onOpen: () => void
  onDismiss: () => void
}

/**
 * The port that led to an app until Slipway ended, why it does not now, and the buttons that open it again or let it
 * be.
 */
export function LostDoorLine({ door, title, onOpen, onDismiss }: LostDoorLineProps) {
  const { t } = useTranslation('apps')
  return (
    <div className={css.door} role="status">
      <div className={css.doorHead}>
        <Unplug size={13} aria-hidden />
        <span>{t(door.public ? 'lostDoor.public' : 'lostDoor.own', { port: door.port })}</span>
      </div>
      <div className={css.doorHead}>
        <Button size="small" danger={door.public} aria-label={t('lostDoor.again', { title })} onClick={onOpen}>
          {t(door.public ? 'lostDoor.againPublic' : 'lostDoor.againShort')}
        </Button>
        <Button size="small" type="text" aria-label={t('lostDoor.dismiss', { title })} onClick={onDismiss}>
          {t('lostDoor.dismissShort')}
        </Button>
      </div>
    </div>
  )
}
