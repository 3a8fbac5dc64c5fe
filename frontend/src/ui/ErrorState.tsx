import { Button } from 'antd'
import { CircleAlert, RotateCw } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { hintText, messageText, type Told } from '@/lib/phrases'
import css from './States.module.css'

/** What is shown of a failure; an ApiProblem fits. */
interface ProblemShown extends Told {
  message: string
  code?: string
}

interface ErrorStateProps {
  problem: ProblemShown
  onRetry?: () => void
  /** A line with less air, for a failure inside a panel. */
  compact?: boolean
}

/** A failure of a whole view or panel: the sentence, what to do, the code, and a way to try again. */
export function ErrorState({ problem, onRetry, compact }: ErrorStateProps) {
  const { t } = useTranslation()
  return (
    <div className={compact ? css.compact : css.state} role="alert">
      <CircleAlert size={compact ? 16 : 28} strokeWidth={1.75} className={css.bad} aria-hidden />
      <div className={css.title}>{messageText(problem)}</div>
      {problem.hint ? <div className={css.text}>{hintText(problem)}</div> : null}
      {problem.code ? <code className={css.code}>{problem.code}</code> : null}
      {onRetry ? (
        <Button size={compact ? 'small' : 'middle'} icon={<RotateCw size={14} />} onClick={onRetry}>
          {t('action.retry')}
        </Button>
      ) : null}
    </div>
  )
}
