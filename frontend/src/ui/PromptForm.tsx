import { Button, Checkbox, Input } from 'antd'
import { ExternalLink, KeyRound } from 'lucide-react'
import { useState, type FormEvent } from 'react'
import { useTranslation } from 'react-i18next'
import type { PromptSubject } from '@/lib/operation'
import css from './OperationView.module.css'

const yesOrNo = new Set(['host-key', 'confirm'])

interface PromptFormProps {
  prompt: PromptSubject
  onAnswer: (text: string) => Promise<unknown>
}

/**
 * What an operation asks, answered in place. What is typed as a secret is never shown and forgotten as soon as it is
 * sent.
 */
export function PromptForm({ prompt, onAnswer }: PromptFormProps) {
  const { t } = useTranslation()
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const [all, setAll] = useState(false)
  const label = t(`operation.prompt.${prompt.kind as 'password'}`, { defaultValue: prompt.text })
  const answer = async (reply: string) => {
    setBusy(true)
    try {
      await onAnswer(reply)
      setText('')
    } finally {
      setBusy(false)
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (text !== '' && !busy) void answer(text)
  }
  const field = {
    value: text,
    autoFocus: true,
    autoComplete: 'off',
    spellCheck: false,
    'aria-label': label,
    onChange: (event: { target: { value: string } }) => setText(event.target.value),
  }
  return (
    <form className={css.prompt} onSubmit={submit} data-prompt={prompt.kind}>
      <div className={css.promptHead}>
        {prompt.kind === 'notice' ? <ExternalLink size={15} aria-hidden /> : <KeyRound size={15} aria-hidden />}
        <div>
          {prompt.again ? <div className={css.again}>{t('operation.again')}</div> : null}
          <div className={css.promptText}>
            {prompt.kind === 'host-key' && prompt.fingerprint && prompt.host
              ? t('operation.newHost', { host: prompt.host })
              : prompt.text}
          </div>
          {prompt.fingerprint ? <code className={css.fingerprint}>{prompt.fingerprint}</code> : null}
        </div>
      </div>
      {prompt.kind === 'notice' ? (
        <div className={css.detail}>{t('operation.elsewhere')}</div>
      ) : prompt.kind === 'keep' ? (
        <>
          <div className={css.answers}>
            {(['this', 'that', 'both'] as const).map((side, i) => (
              <Button key={side} disabled={busy} onClick={() => void answer(all ? `${side} all` : side)}>
                {t(`operation.keep.${side}`, { side: prompt.sides?.[i] })}
              </Button>
            ))}
          </div>
          {prompt.remaining ? (
            <Checkbox checked={all} onChange={(event) => setAll(event.target.checked)}>
              {t('operation.keep.all', { count: prompt.remaining })}
            </Checkbox>
          ) : null}
        </>
      ) : yesOrNo.has(prompt.kind) ? (
        <div className={css.answers}>
          <Button type="primary" loading={busy} onClick={() => void answer('yes')}>
            {t(prompt.kind === 'host-key' ? 'operation.trust' : 'operation.yes')}
          </Button>
          <Button disabled={busy} onClick={() => void answer('no')}>
            {t(prompt.kind === 'host-key' ? 'operation.refuse' : 'operation.no')}
          </Button>
        </div>
      ) : (
        <div className={css.answers}>
          {prompt.secret ? (
            <Input.Password {...field} visibilityToggle={false} />
          ) : (
            <Input {...field} className={prompt.kind === 'username' ? '' : (css.code ?? '')} />
          )}
          <Button type="primary" htmlType="submit" loading={busy} disabled={text === ''}>
            {t('operation.answer')}
          </Button>
        </div>
      )}
    </form>
  )
}
