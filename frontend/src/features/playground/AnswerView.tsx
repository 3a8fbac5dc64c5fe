import { Button, Tooltip } from 'antd'
import { CircleAlert, CircleStop, LoaderCircle, RotateCw, TriangleAlert, Unplug } from 'lucide-react'
import { memo, type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Service } from '@/api/types.gen'
import { formatCount, formatFirstWord } from '@/lib/figures'
import { hintText, messageText, whyText } from '@/lib/phrases'
import { answers } from '@/lib/serviceState'
import { CopyButton } from '@/ui/CopyButton'
import { blocksOf } from './blocks'
import { type Answer, isOpen } from './conversation'
import css from './playground.module.css'
import { speedOf } from './speed'

interface AnswerViewProps {
  answer: Answer
  /** As it is now; undefined: it is not listed. */
  service: Service | undefined
  /** Undefined: no other answer can be asked for. */
  onAgain: (() => void) | undefined
}

/** What a service answered, how fast, and how it ended. */
export function AnswerView({ answer, service, onAgain }: AnswerViewProps) {
  const { t } = useTranslation('playground')
  const { name } = answer.of
  return (
    <div className={css.answer} aria-busy={isOpen(answer)}>
      <div className={css.answerHead}>
        <span className={css.who}>{name}</span>
        {isOpen(answer) ? null : (
          <span className={css.tools}>
            {answer.text ? <CopyButton text={answer.text} label={t('copy', { name })} /> : null}
            {onAgain ? (
              <Tooltip title={t('again')}>
                <Button
                  type="text"
                  size="small"
                  aria-label={t('againFrom', { name })}
                  icon={<RotateCw size={13} />}
                  onClick={onAgain}
                />
              </Tooltip>
            ) : null}
          </span>
        )}
      </div>
      {answer.thought ? <Thought text={answer.thought} thinking={isOpen(answer) && !answer.text} /> : null}
      <Words text={answer.text} />
      <Ending answer={answer} service={service} />
      {answer.text ? <Figures answer={answer} /> : null}
    </div>
  )
}

/** What a model thought: open while it thinks, and closed when it answers unless the person decided. */
function Thought({ text, thinking }: { text: string; thinking: boolean }) {
  const { t } = useTranslation('playground')
  const [chosen, setChosen] = useState<boolean>()
  return (
    <details className={css.thought} open={chosen ?? thinking}>
      <summary
        onClick={(event) => {
          event.preventDefault() // React alone decides
          setChosen(!(chosen ?? thinking))
        }}
      >
        {t(thinking ? 'thinking' : 'thought')}
      </summary>
      <p className={css.words}>{text}</p>
    </details>
  )
}

function Words({ text }: { text: string }) {
  return blocksOf(text).map((block, index) => <Part key={index} code={block.code} text={block.text} />)
}

/** Only the last part of an answer changes while words arrive. */
const Part = memo(function Part({ code, text }: { code: boolean; text: string }) {
  const { t } = useTranslation('playground')
  if (!code) return <p className={css.words}>{text}</p>
  return (
    <div className={css.codeBox}>
      <pre className={css.code} tabIndex={0} aria-label={t('code')}>
        {text}
      </pre>
      <CopyButton text={text} label={t('copyCode')} />
    </div>
  )
})

function Note({ icon, tone, children }: { icon: ReactNode; tone: 'off' | 'part' | 'bad'; children: ReactNode }) {
  return (
    <div className={`${css.note} ${css[tone]}`}>
      {icon}
      <div>{children}</div>
    </div>
  )
}

function Ending({ answer: { outcome, finish, problem, text }, service }: Omit<AnswerViewProps, 'onAgain'>) {
  const { t } = useTranslation(['playground', 'services'])
  if (outcome === 'waiting')
    return (
      <Note tone="off" icon={<LoaderCircle size={14} className={css.spin} aria-hidden />}>
        {!service || answers(service) ? (
          t('playground:waiting')
        ) : (
          <>
            {t('playground:holding', {
              state: t(`services:state.${service.state as 'ASLEEP'}`, { defaultValue: service.state }),
            })}{' '}
            {whyText(service)}
          </>
        )}
      </Note>
    )
  if (outcome === 'stopped')
    return (
      <Note tone="off" icon={<CircleStop size={14} aria-hidden />}>
        {t('playground:stopped')}
      </Note>
    )
  if (outcome === 'broken')
    return (
      <Note tone="part" icon={<Unplug size={14} aria-hidden />}>
        <b>{t('playground:broken')}</b> {t(text ? 'playground:brokenText' : 'playground:brokenEmpty')}
      </Note>
    )
  if (outcome === 'failed' && problem)
    return (
      <Note tone="bad" icon={<CircleAlert size={14} aria-hidden />}>
        <b>{messageText(problem)}</b> {hintText(problem)} {problem.code ? <code>{problem.code}</code> : null}
      </Note>
    )
  if (finish === 'length')
    return (
      <Note tone="off" icon={<TriangleAlert size={14} aria-hidden />}>
        {t('playground:length')}
      </Note>
    )
  if (outcome === 'done' && !text)
    return (
      <Note tone="off" icon={<TriangleAlert size={14} aria-hidden />}>
        {t('playground:nothing')}
      </Note>
    )
  return null
}

function Figures({ answer }: { answer: Answer }) {
  const { t } = useTranslation('playground')
  const speed = speedOf(answer)
  const { usage, first } = answer
  const figures: [string, string | undefined][] = [
    [t('figure.prompt'), usage && t('tokens', tokens(usage.prompt))],
    [t('figure.answer'), usage && t('tokens', tokens(usage.completion))],
    [t('figure.first'), first === undefined ? undefined : formatFirstWord(Math.ceil(first))],
    [t('figure.speed'), speed === undefined ? undefined : t('perSecond', { amount: Number(speed.toPrecision(3)) })],
  ]
  return (
    <dl className={css.figures}>
      {figures.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="num">{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

const tokens = (count: number) => ({ count, amount: formatCount(count) })
