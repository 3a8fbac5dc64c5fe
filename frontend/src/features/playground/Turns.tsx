import { Button } from 'antd'
import { MessageSquare, Pencil } from 'lucide-react'
import { type ReactNode, useLayoutEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import type { ServiceRef } from '@/api/services'
import type { Service } from '@/api/types.gen'
import { EmptyState } from '@/ui/EmptyState'
import { AnswerView } from './AnswerView'
import { isOpen, type Turn } from './conversation'
import css from './playground.module.css'
import { isSame } from './useSides'

interface TurnsProps {
  turns: readonly Turn[]
  sides: readonly ServiceRef[]
  services: readonly Service[]
  /** The last prompt is being changed. */
  editing: boolean
  onAgain: (side: number) => void
  onEdit: () => void
}

/** How far from the end still counts as the end, in pixels. */
const slack = 48

/** The conversation. It follows what arrives unless a person scrolled up. */
export function Turns({ turns, sides, services, editing, onAgain, onEdit }: TurnsProps) {
  const { t } = useTranslation('playground')
  const box = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const count = turns.length
  useLayoutEffect(() => {
    follows.current = true
  }, [count])
  useLayoutEffect(() => {
    const at = box.current
    if (at && follows.current) at.scrollTop = at.scrollHeight
  }, [turns])
  const onScroll = () => {
    const at = box.current
    if (at) follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < slack
  }
  return (
    <div ref={box} className={css.turns} onScroll={onScroll} role="region" aria-label={t('conversation')} tabIndex={0}>
      {count === 0 ? (
        <div className={css.empty}>
          <EmptyState icon={MessageSquare} title={t('empty.title')} text={t('empty.text')} />
        </div>
      ) : (
        turns.map((turn, index) => {
          const last = index === count - 1
          const rests = last && !editing && !turn.answers.some(isOpen)
          return (
            <article key={turn.id} className={`${css.turn} ${last && editing ? css.replaced : ''}`}>
              <Prompt text={turn.prompt}>
                {rests ? (
                  <Button
                    type="text"
                    size="small"
                    aria-label={t('edit')}
                    title={t('edit')}
                    icon={<Pencil size={13} />}
                    onClick={onEdit}
                  />
                ) : null}
              </Prompt>
              <div className={css.answers}>
                {sides.map((side, at) => {
                  const answer = turn.answers[at]
                  if (!answer)
                    return (
                      <div key={at} className={css.answer}>
                        {rests ? (
                          <Button size="small" onClick={() => onAgain(at)}>
                            {t('ask', { name: side.name })}
                          </Button>
                        ) : null}
                      </div>
                    )
                  return (
                    <AnswerView
                      key={at}
                      answer={answer}
                      service={services.find((one) => isSame(one, answer.of))}
                      onAgain={rests ? () => onAgain(at) : undefined}
                    />
                  )
                })}
              </div>
            </article>
          )
        })
      )}
    </div>
  )
}

function Prompt({ text, children }: { text: string; children: ReactNode }) {
  const { t } = useTranslation('playground')
  return (
    <div className={css.prompt}>
      <p className={css.promptText}>
        <span className="unseen">{t('you')} </span>
        {text}
      </p>
      {children}
    </div>
  )
}
