import { Select, Tooltip } from 'antd'
import { PanelRightOpen } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import type { ServiceRef } from '@/api/services'
import type { Service } from '@/api/types.gen'
import { whyText } from '@/lib/phrases'
import { answers } from '@/lib/serviceState'
import { ServiceBadge } from '@/ui/ServiceBadge'
import css from './playground.module.css'
import { isSame } from './useSides'

interface SideHeadProps {
  label: string
  of: ServiceRef
  services: readonly Service[]
  /** There are several machines: say on which each service is. */
  several: boolean
  onChoose: (of: ServiceRef) => void
}

/** Which service answers on a side, and why not where it does not. */
export function SideHead({ label, of, services, several, onChoose }: SideHeadProps) {
  const { t } = useTranslation('playground')
  const keyOf = ({ name, agent }: ServiceRef) => `${agent}/${name}`
  const service = services.find((one) => isSame(one, of))
  return (
    <div className={css.side}>
      <div className={css.sideBar}>
        <Select
          showSearch
          aria-label={label}
          className={css.choose ?? ''}
          value={service ? keyOf(of) : null}
          placeholder={of.name}
          optionFilterProp="label"
          options={services.map((one) => ({
            value: keyOf(one),
            label: several ? t('serviceOn', { name: one.name, machine: one.agent }) : one.name,
          }))}
          onChange={(key) => {
            const chosen = services.find((one) => keyOf(one) === key)
            if (chosen) onChoose(chosen)
          }}
        />
        {service ? <ServiceBadge state={service.state} /> : null}
        {service ? (
          <Tooltip title={t('detail', { name: of.name })}>
            <Link
              className={css.detail}
              aria-label={t('detail', { name: of.name })}
              to={`/services/${encodeURIComponent(of.name)}?on=${encodeURIComponent(of.agent)}`}
            >
              <PanelRightOpen size={15} aria-hidden />
            </Link>
          </Tooltip>
        ) : null}
      </div>
      {!service ? (
        <p className={css.why}>{t('gone', { name: of.name })}</p>
      ) : answers(service) || !service.why ? null : (
        <p className={css.why}>{whyText(service)}</p>
      )}
    </div>
  )
}
