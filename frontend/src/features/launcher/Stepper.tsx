import { Check, CircleAlert } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import css from './launcher.module.css'
import { type Step, STEPS } from './draft'

interface StepperProps {
  step: Step
  left: ReadonlySet<Step>
  /** The steps that hold a fault which is shown. */
  bad: readonly Step[]
  summary: Partial<Record<Step, string>>
  onGo: (step: Step) => void
}

/** The five steps; any may be taken at any time. */
export function Stepper({ step, left, bad, summary, onGo }: StepperProps) {
  const { t } = useTranslation('launcher')
  return (
    <nav className={css.stepper} aria-label={t('steps')} data-tour="steps">
      <ol>
        {STEPS.map((name, index) => {
          const wrong = bad.includes(name)
          const done = left.has(name) && !wrong && name !== 'confirm'
          return (
            <li key={name}>
              <button
                type="button"
                className={`${css.step} ${name === step ? css.stepNow : ''}`}
                aria-current={name === step ? 'step' : undefined}
                data-step={name}
                data-bad={wrong}
                onClick={() => onGo(name)}
              >
                <span className={`${css.stepMark} ${wrong ? css.stepBad : done ? css.stepDone : ''}`}>
                  {wrong ? (
                    <CircleAlert size={14} aria-label={t('stepBad')} />
                  ) : done ? (
                    <Check size={13} aria-hidden />
                  ) : (
                    index + 1
                  )}
                </span>
                <span className={css.stepText}>
                  <span className={css.stepName}>{t(`step.${name}`)}</span>
                  {summary[name] ? <span className={css.stepSummary}>{summary[name]}</span> : null}
                </span>
              </button>
            </li>
          )
        })}
      </ol>
    </nav>
  )
}
