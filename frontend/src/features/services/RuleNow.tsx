import { useTranslation } from 'react-i18next'
import type { RuleState } from '@/api/types.gen'
import { RelativeTime } from '@/ui/Times'
import { formatValue } from '@/lib/figures'
import css from './rules.module.css'

/** The value of a rule and what it does about it. */
export function RuleNow({ state, percent }: { state: RuleState; percent: boolean }) {
  const { t } = useTranslation('services')
  const acts = state.does === 'above' || state.does === 'below'
  return (
    <p className={css.now}>
      <span className={css.value}>
        {state.value === undefined
          ? t('rule.noValue')
          : t('rule.now', { value: `${formatValue(state.value)}${percent ? '%' : ''}` })}
      </span>
      <span className={acts ? css.acts : css.dim}>
        {t([`rule.does.${state.does as 'within'}`, 'rule.does.within'])}{' '}
        {acts && state.due ? <RelativeTime at={state.due} ahead /> : null}
      </span>
    </p>
  )
}
