import { Button, Popover, Tooltip } from 'antd'
import { FlaskConical, Laptop } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Demo } from '@/api/types.gen'
import css from './demo.module.css'
import { useDemo, useLid } from './useDemo'

function About({ demo }: { demo: Demo }) {
  const { t } = useTranslation('demo')
  return (
    <div className={css.about}>
      <p>{t('about')}</p>
      <dl className={css.facts}>
        <dt>{t('story')}</dt>
        <dd>{t(`stories.${demo.story}`, { defaultValue: demo.story })}</dd>
        <dt>{t('seed')}</dt>
        <dd className="num">{demo.seed}</dd>
        <dt>{t('speed')}</dt>
        <dd className="num">{demo.speed} ×</dd>
      </dl>
    </div>
  )
}

function LidButton({ demo }: { demo: Demo }) {
  const { t } = useTranslation('demo')
  const lid = useLid()
  const text = t(demo.lidClosed ? 'openLid' : 'closeLid')
  return (
    <Tooltip title={t(demo.lidClosed ? 'openLidHint' : 'closeLidHint', { agent: demo.lab })}>
      <Button
        size="small"
        className={css.lid ?? ''}
        data-tour="lid"
        aria-label={text}
        icon={<Laptop size={14} />}
        loading={lid.isPending}
        onClick={() => lid.mutate(!demo.lidClosed)}
      >
        <span className={css.lidText}>{text}</span>
      </Button>
    </Tooltip>
  )
}

/** The mark that nothing on the page is real, with the switch that cuts the tunnel. Where all is real there is none. */
export function DemoBadge() {
  const { t } = useTranslation('demo')
  const demo = useDemo()
  if (!demo) return null
  return (
    <div className={css.mark}>
      <Popover content={<About demo={demo} />} title={t('title')} trigger={['click']} placement="bottomLeft">
        <button type="button" className={css.badge} data-tour="mark" aria-haspopup="dialog">
          <FlaskConical size={14} aria-hidden />
          {t('badge')}
        </button>
      </Popover>
      {demo.lab ? <LidButton demo={demo} /> : null}
    </div>
  )
}

/** The mark in a window that has no header. */
export function DemoCorner() {
  const { t } = useTranslation('demo')
  return useDemo() ? (
    <span className={`${css.badge} ${css.corner}`}>
      <FlaskConical size={14} aria-hidden />
      {t('badge')}
    </span>
  ) : null
}
