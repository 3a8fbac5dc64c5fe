import { Button, Checkbox } from 'antd'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { asProblem } from '@/api/client'
import { useSecrets, useSetSecret } from '@/api/secrets'
import { SecretDialog } from '@/ui/SecretDialog'
import css from './launcher.module.css'
import { Card } from './Card'
import { IssueLine } from './Field'
import type { StepProps } from './StepProps'

/** Which of the stored secrets a session gets, by their names. */
export function SecretsCard({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const [adding, setAdding] = useState(false)
  const save = useSetSecret()
  const stored = (useSecrets().data ?? []).filter(({ kind }) => kind === 'variable').map(({ name }) => name)
  // A draft may name some that are not here, of a recipe for instance.
  const names = [...new Set([...stored, ...draft.secrets])]
  const tick = (name: string, on: boolean) =>
    change((old) => ({
      ...old,
      secrets: [...old.secrets.filter((other) => other !== name), ...(on ? [name] : [])],
    }))
  const open = () => {
    save.reset()
    setAdding(true)
  }
  return (
    <Card title={t('secrets.title')} text={t('secrets.text')} aside={<Link to="/settings">{t('secrets.manage')}</Link>}>
      {names.length > 0 ? (
        <div className={css.secrets}>
          {names.map((name) => (
            <Checkbox
              key={name}
              checked={draft.secrets.includes(name)}
              onChange={(event) => tick(name, event.target.checked)}
            >
              <code>{name}</code>
            </Checkbox>
          ))}
        </div>
      ) : null}
      {draft.secrets.map((name, index) => {
        const issue = issues.at(`secrets[${index}]`)
        return issue ? <IssueLine key={name} issue={issue} /> : null
      })}
      <Button type="dashed" icon={<Plus size={14} />} onClick={open}>
        {t('secrets.add')}
      </Button>
      {adding ? (
        <SecretDialog
          kind="variable"
          busy={save.isPending}
          problem={save.error && asProblem(save.error)}
          onSave={(content) =>
            save.mutate(content, {
              onSuccess: ({ name }) => {
                tick(name, true)
                setAdding(false)
              },
            })
          }
          onClose={() => setAdding(false)}
        />
      ) : null}
    </Card>
  )
}
