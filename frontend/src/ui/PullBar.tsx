import { useTranslation } from 'react-i18next'
import { pullShare, type PullSubject } from './useWhy'
import css from './PullBar.module.css'

/** A thin bar of a pull's progress; it wanders while the size is unknown. */
export function PullBar({ pull }: { pull: PullSubject }) {
  const { t } = useTranslation()
  const share = pullShare(pull)
  const percent = share === undefined ? undefined : Math.round(share * 100)
  return (
    <div
      className={css.bar}
      role="progressbar"
      aria-label={t('pull.label')}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
    >
      <div
        className={percent === undefined ? css.wander : css.fill}
        style={percent === undefined ? undefined : { width: `${percent}%` }}
      />
    </div>
  )
}
