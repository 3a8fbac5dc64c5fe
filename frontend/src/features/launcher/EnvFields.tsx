import { Button, Input, type InputRef } from 'antd'
import { Eye, EyeOff, Lock, Plus, Trash2 } from 'lucide-react'
import { type ClipboardEvent, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { HIDDEN, SECRET_NAME } from '@/api/rules.gen'
import css from './launcher.module.css'
import { Card } from './Card'
import { parseDotenv, putVariables } from './dotenv'
import type { EnvRow } from './draft'
import { IssueLine } from './Field'
import type { StepProps } from './StepProps'

/** The environment variables of a session. */
export function EnvFields({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const set = (index: number, row: Partial<EnvRow>) =>
    change((old) => ({ ...old, env: old.env.map((r, i) => (i === index ? { ...r, ...row } : r)) }))
  return (
    <Card title={t('env.title')} text={t('env.text')}>
      {draft.env.map((row, index) => (
        <EnvLine
          // Rows have no identity but their place: they are added at the end and hold no state worth keeping.
          key={index}
          row={row}
          index={index}
          issues={issues}
          onChange={(next) => set(index, next)}
          onVariables={(rows) => change((old) => ({ ...old, env: putVariables(old.env, index, rows) }))}
          onRemove={() => change((old) => ({ ...old, env: old.env.filter((_, i) => i !== index) }))}
        />
      ))}
      <Button
        type="dashed"
        icon={<Plus size={14} />}
        onClick={() => change((old) => ({ ...old, env: [...old.env, { name: '', value: '' }] }))}
      >
        {t('env.add')}
      </Button>
    </Card>
  )
}

/** Variables as they are shown: values of secrets are not. */
export function Variables({ env }: { env: readonly EnvRow[] }) {
  const lines = env.map(({ name, value }) => `${name}=${SECRET_NAME.test(name) ? HIDDEN : value}`)
  return <pre className={css.command}>{lines.join('\n')}</pre>
}

interface EnvLineProps {
  row: EnvRow
  index: number
  issues: StepProps['issues']
  onChange: (row: Partial<EnvRow>) => void
  /** Whole variables, entered where a name is expected. */
  onVariables: (rows: EnvRow[]) => void
  onRemove: () => void
}

function EnvLine({ row, index, issues, onChange, onVariables, onRemove }: EnvLineProps) {
  const { t } = useTranslation('launcher')
  const [shown, setShown] = useState(false)
  const value = useRef<InputRef>(null)
  // A name has no "=": what comes after it is the value, however it was entered.
  const enterName = (text: string) => {
    const rows = parseDotenv(text)
    if (!rows) return onChange({ name: text })
    const [one] = rows
    if (one && rows.length === 1) onChange({ name: one.name, value: one.value || row.value })
    else onVariables(rows)
    value.current?.focus()
  }
  const paste = (event: ClipboardEvent) => {
    const text = event.clipboardData.getData('text')
    // The field itself would join the lines.
    if (!text.includes('\n') || !parseDotenv(text)) return
    event.preventDefault()
    enterName(text)
  }
  const secret = SECRET_NAME.test(row.name)
  const nameIssue = issues.at(`env[${index}].name`)
  const valueIssue = issues.at(`env[${index}].value`)
  return (
    <div className={css.row}>
      <div className={css.pair}>
        <Input
          className={css.mono}
          aria-label={t('env.nameOf', { number: index + 1 })}
          aria-invalid={nameIssue?.severity === 'error'}
          status={nameIssue?.severity ?? ''}
          placeholder={t('env.name')}
          value={row.name}
          spellCheck={false}
          autoComplete="off"
          onPaste={paste}
          onChange={(event) => enterName(event.target.value)}
        />
        <Input
          ref={value}
          className={css.mono}
          aria-label={t('env.valueOf', { number: index + 1 })}
          aria-invalid={valueIssue?.severity === 'error'}
          status={valueIssue?.severity ?? ''}
          placeholder={t('env.value')}
          type={secret && !shown ? 'password' : 'text'}
          value={row.value}
          spellCheck={false}
          autoComplete="off"
          prefix={secret ? <Lock size={13} aria-label={t('env.secret')} /> : undefined}
          suffix={
            secret ? (
              <button
                type="button"
                className={css.bare}
                aria-label={t(shown ? 'env.hide' : 'env.show')}
                onClick={() => setShown(!shown)}
              >
                {shown ? <EyeOff size={14} aria-hidden /> : <Eye size={14} aria-hidden />}
              </button>
            ) : (
              // With none at all, antd would make another field of it, which loses the focus.
              <span />
            )
          }
          onChange={(event) => onChange({ value: event.target.value })}
        />
        <Button
          type="text"
          aria-label={t('env.remove', { number: index + 1 })}
          icon={<Trash2 size={15} />}
          onClick={onRemove}
        />
      </div>
      {nameIssue ? <IssueLine issue={nameIssue} /> : null}
      {valueIssue ? <IssueLine issue={valueIssue} /> : null}
    </div>
  )
}
