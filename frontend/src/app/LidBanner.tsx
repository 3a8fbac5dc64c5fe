import { Button } from 'antd'
import { Laptop } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useDemo, useLid } from '@/features/demo/useDemo'
import css from './Shell.module.css'

/** Says that the tunnel is cut by choice, and mends it. */
export function LidBanner() {
  const { t } = useTranslation('demo')
  const demo = useDemo()
  const lid = useLid()
  if (!demo?.lidClosed) return null
  return (
    <div className={css.banner} role="status">
      <Laptop size={16} aria-hidden />
      <div className={css.bannerWords}>
        <strong>{t('lidClosed')}</strong>{' '}
        <span className={css.bannerText}>{t('lidClosedText', { agent: demo.lab })}</span>
      </div>
      <Button size="small" loading={lid.isPending} onClick={() => lid.mutate(false)}>
        {t('openLid')}
      </Button>
    </div>
  )
}
