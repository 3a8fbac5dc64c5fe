import { Modal, type ModalProps } from 'antd'
import { useEffect, useState } from 'react'

/**
 * A modal that is there as long as it is open. When it goes, the focus is back
 * on what had it before: antd does so only for modals that stay and are hidden.
 */
export function Dialog(props: Omit<ModalProps, 'open'>) {
  const [before] = useState(() => document.activeElement)
  useEffect(
    () => () => {
      const lost = document.activeElement === null || document.activeElement === document.body
      if (lost && before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
    },
    [before],
  )
  return <Modal {...props} open />
}
