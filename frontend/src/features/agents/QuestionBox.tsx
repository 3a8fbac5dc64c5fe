import { Button } from 'antd'
import { ShieldQuestion } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, type ApiProblem, call } from '@/api/client'
import type { Question } from '@/api/types.gen'
import { useStartOperation } from '@/api/useOperation'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import css from './agents.module.css'

/** An agent, or the ssh of its machine, shows another key than before: both are shown, and a person decides. */
export function QuestionBox({ name, question }: { name: string; question: Question }) {
  const { t } = useTranslation('agents')
  const [busy, setBusy] = useState<'accept' | 'refuse' | null>(null)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const start = useStartOperation()
  // That of the machine's ssh is asked about once more, by ssh itself, when it is connected.
  const host = question.kind === 'host-key'
  const answer = async (accept: boolean) => {
    setBusy(accept ? 'accept' : 'refuse')
    setProblem(null)
    try {
      await call('agent-answer', { path: { agent: name }, body: { accept, found: question.found } })
      if (accept && host) await start(() => call('agent-reconnect', { path: { agent: name } }))
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(null)
    }
  }
  return (
    <section className={css.question} role="alertdialog" aria-label={t(host ? 'question.hostTitle' : 'question.title')}>
      <div className={css.questionHead}>
        <ShieldQuestion size={18} aria-hidden />
        <b>{t(host ? 'question.hostTitle' : 'question.title')}</b>
        <span className={css.questionTime}>
          <RelativeTime at={question.asked} />
        </span>
      </div>
      <p>{t(host ? 'question.hostText' : 'question.text')}</p>
      <dl className={css.keys}>
        <dt>{t(host ? 'question.knownIn' : 'question.pinned')}</dt>
        <dd>{question.pinned ? <code>{question.pinned}</code> : t('question.unknown')}</dd>
        <dt>{t('question.found')}</dt>
        <dd>
          <code>{question.found}</code>
        </dd>
      </dl>
      <p className={css.dim}>{t(host ? 'question.hostAdvice' : 'question.advice')}</p>
      {problem ? <ErrorState compact problem={problem} /> : null}
      <div className={css.buttons}>
        <Button danger loading={busy === 'accept'} disabled={busy === 'refuse'} onClick={() => void answer(true)}>
          {t('question.accept')}
        </Button>
        <Button loading={busy === 'refuse'} disabled={busy === 'accept'} onClick={() => void answer(false)}>
          {t('question.refuse')}
        </Button>
      </div>
    </section>
  )
}
