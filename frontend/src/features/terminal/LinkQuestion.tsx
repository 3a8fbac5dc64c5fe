import { Button, Modal } from 'antd'
import { useTranslation } from 'react-i18next'
import { useSessionActions } from '@/lib/actions'
import type { PrintedLink } from './link'
import css from './terminal.module.css'

interface LinkQuestionProps {
  session: string
  link: PrintedLink | null
  onClose: () => void
}

/** Shows where an address leads before it is opened: the program that printed it chose its words. */
export function LinkQuestion({ session, link, onClose }: LinkQuestionProps) {
  const { t } = useTranslation('terminal')
  const actions = useSessionActions()
  const follow = () => {
    if (link) window.open(link.href, '_blank', 'noopener')
    onClose()
  }
  const apps = () => {
    onClose()
    actions.openApps(session)
  }
  return (
    <Modal
      open={link !== null}
      title={t('link.title', { host: link?.host })}
      onCancel={onClose}
      destroyOnHidden
      footer={[
        <Button key="no" onClick={onClose}>
          {t('link.no')}
        </Button>,
        <Button key="yes" type={link?.inside ? 'default' : 'primary'} onClick={follow}>
          {t('link.yes')}
        </Button>,
        link?.inside ? (
          <Button key="apps" type="primary" onClick={apps}>
            {t('link.apps')}
          </Button>
        ) : null,
      ]}
    >
      <p className={css.quiet}>{t(link?.inside ? 'link.inside' : 'link.text')}</p>
      <pre className={css.preview}>{link?.href}</pre>
    </Modal>
  )
}
