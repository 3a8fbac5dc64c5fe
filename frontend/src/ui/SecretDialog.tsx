import { AutoComplete, Input, type InputRef } from 'antd'
import { type ComponentProps, type ReactNode, useId, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Dialog } from './Dialog'
import { ErrorState } from './ErrorState'
import css from './SecretDialog.module.css'

type Kind = 'variable' | 'registry'

interface Content {
  kind: Kind
  name: string
  value: string
  user?: string
}

/** What is asked for most. */
const USUAL: Record<Kind, readonly string[]> = {
  variable: ['HF_TOKEN', 'WANDB_API_KEY', 'NGC_API_KEY', 'OPENAI_API_KEY', 'GITHUB_TOKEN'],
  registry: ['docker.io', 'ghcr.io', 'nvcr.io', 'quay.io', 'registry.gitlab.com'],
}

/** NVIDIA's registry has one user for everybody, whose password is a key. */
const NVIDIA = { host: 'nvcr.io', user: '$oauthtoken' }

interface SecretDialogProps {
  kind: Kind
  /** The one to replace; without it, a name is asked for too. */
  replaces?: { name: string; user?: string }
  busy: boolean
  /** Why it was not stored. */
  problem: ComponentProps<typeof ErrorState>['problem'] | null
  onSave: (content: Content) => void
  onClose: () => void
}

/** Asks for a secret: a variable for sessions, or the login to a registry. Its value is never shown again. */
export function SecretDialog({ kind, replaces, busy, problem, onSave, onClose }: SecretDialogProps) {
  const { t } = useTranslation(['secrets', 'common'])
  const [name, setName] = useState(replaces?.name ?? '')
  const [user, setUser] = useState(replaces?.user ?? '')
  const [value, setValue] = useState('')
  const field = useRef<InputRef>(null)
  const registry = kind === 'registry'
  const usual = USUAL[kind].filter((option) => option !== name && option.toLowerCase().includes(name.toLowerCase()))
  const complete = name !== '' && value !== '' && (!registry || user !== '')
  // A name has no "=": what comes after it is the value, however it was entered.
  const enterName = (text: string) => {
    const [, before, after] = (!registry && /^\s*(?:export\s+)?([^=\s]+)\s*=\s*(.*)$/s.exec(text)) || []
    setName(before ?? text.trim())
    if (registry && text.trim() === NVIDIA.host && user === '') setUser(NVIDIA.user)
    if (before === undefined) return
    if (after) setValue(after.trim().replace(/^(["'])(.*)\1$/s, '$2'))
    field.current?.focus()
  }
  const submit = () => {
    if (complete && !busy) onSave({ kind, name, value, ...(registry ? { user } : {}) })
  }
  const title = replaces ? t('secrets:replaceTitle', { name }) : t(`secrets:${kind}.add`)
  return (
    <Dialog
      title={title}
      okText={t('common:action.save')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ loading: busy, disabled: !complete }}
      onOk={submit}
      onCancel={onClose}
    >
      <form
        className={css.form}
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        {replaces ? null : (
          <Row label={t(`secrets:${kind}.name`)}>
            {(id) => (
              <AutoComplete
                id={id}
                autoFocus
                className={css.mono ?? ''}
                options={usual.map((option) => ({ value: option }))}
                value={name}
                onChange={enterName}
              />
            )}
          </Row>
        )}
        {registry ? (
          <Row label={t('secrets:registry.user')}>
            {(id) => (
              <Input
                id={id}
                autoComplete="off"
                spellCheck={false}
                value={user}
                onChange={(event) => setUser(event.target.value)}
              />
            )}
          </Row>
        ) : null}
        <Row label={t(`secrets:${kind}.value`)} hint={t(`secrets:${kind}.hint`)}>
          {(id) => (
            <Input.Password
              id={id}
              ref={field}
              autoFocus={replaces !== undefined}
              autoComplete="new-password"
              spellCheck={false}
              value={value}
              onChange={(event) => setValue(event.target.value)}
            />
          )}
        </Row>
        {problem ? <ErrorState compact problem={problem} /> : null}
        <button type="submit" hidden aria-hidden tabIndex={-1} />
      </form>
    </Dialog>
  )
}

function Row({ label, hint, children }: { label: string; hint?: string; children: (id: string) => ReactNode }) {
  const id = useId()
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint ? <div className={css.hint}>{hint}</div> : null}
    </div>
  )
}
