import {
  CircleAlert,
  CircleDashed,
  CloudDownload,
  Hourglass,
  LoaderCircle,
  Rocket,
  TriangleAlert,
  type LucideIcon,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useMachines } from '@/api/hooks'
import { formatBytes } from '@/lib/bytes'
import { hintText, messageText } from '@/lib/phrases'
import css from './launcher.module.css'
import type { ImageState } from './images'
import type { Issues } from './issueText'
import type { Judgement } from './useJudgement'

/** What would happen if it were launched now: starts at once, waits for something, pulls something. */
export function Outlook({ judgement, shown, image }: { judgement: Judgement; shown: Issues; image: ImageState }) {
  const { t } = useTranslation('launcher')
  const machines = useMachines().data
  const { errors, preview, current } = judgement
  if (errors.length > 0 && !shown.all.some((issue) => issue.severity === 'error')) {
    return (
      <Line icon={CircleDashed} kind="busy" title={t('outlook.incomplete')}>
        {t('outlook.missing', { count: errors.length })}
      </Line>
    )
  }
  if (errors.length > 0) {
    return (
      <Line icon={CircleAlert} kind="bad" title={t('outlook.errors', { count: errors.length })}>
        {t('outlook.errorsText')}
      </Line>
    )
  }
  if (preview.isError) {
    const problem = asProblem(preview.error)
    return (
      <Line icon={TriangleAlert} kind="slow" title={t('outlook.unknown')}>
        {messageText(problem)} {hintText(problem)} {t('outlook.unchecked')}
      </Line>
    )
  }
  const told = preview.data
  if (!told) return <Line icon={LoaderCircle} kind="busy" title={t('outlook.asking')} />
  const pulls = !told.image && !image.installed
  const size = image.size > 0 ? formatBytes(image.size) : ''
  return (
    <div className={current ? undefined : css.stale} aria-live="polite">
      {told.wait ? (
        <Line icon={Hourglass} kind="slow" title={t('outlook.waits')}>
          {messageText(told.wait)}
        </Line>
      ) : (
        <Line icon={Rocket} kind="good" title={t(pulls ? 'outlook.startsAfterPull' : 'outlook.starts')}>
          {told.agent
            ? t('outlook.on', {
                agent:
                  ((machines?.length ?? 0) > 1 ? undefined : machines?.find((m) => m.agent === told.agent)?.hostname) ||
                  told.agent,
              })
            : ''}
        </Line>
      )}
      {pulls ? (
        <Line
          icon={CloudDownload}
          kind="slow"
          title={size ? t('outlook.pullsSize', { amount: size }) : t('outlook.pulls')}
        >
          {t('outlook.pullsText')}
        </Line>
      ) : null}
    </div>
  )
}

function Line({
  icon: Icon,
  kind,
  title,
  children,
}: {
  icon: LucideIcon
  kind: 'good' | 'slow' | 'bad' | 'busy'
  title: string
  children?: ReactNode
}) {
  return (
    <div className={`${css.outlook} ${css[kind]}`} data-outlook={kind}>
      <Icon size={16} aria-hidden className={Icon === LoaderCircle ? css.turn : undefined} />
      <div>
        <div className={css.outlookTitle}>{title}</div>
        {children ? <div className={css.outlookText}>{children}</div> : null}
      </div>
    </div>
  )
}
