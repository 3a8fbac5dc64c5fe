import { Checkbox, Select, Tag } from 'antd'
import { useTranslation } from 'react-i18next'
import { MAX_PORT, MAX_PORTS, MIN_PORT } from '@/api/rules.gen'
import css from './launcher.module.css'
import { Card } from './Card'
import { Field, IssueLine } from './Field'
import { splitPorts } from './ports'
import type { StepProps } from './StepProps'

export function NetworkStep({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  return (
    <>
      <Ports draft={draft} issues={issues} change={change} />
      <Card title={t('ssh.title')} text={t('ssh.text')}>
        <Checkbox checked={!draft.noSSH} onChange={(event) => change({ noSSH: !event.target.checked })}>
          {t('ssh.label')}
        </Checkbox>
      </Card>
    </>
  )
}

function Ports({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const faults = draft.ports.flatMap((_, index) => issues.at(`ports[${index}]`) ?? [])
  const whole = issues.at('ports')
  const isBad = (token: string) =>
    draft.ports.some((other, index) => other === token && issues.at(`ports[${index}]`)?.severity === 'error')
  const worst = [...faults, ...(whole ? [whole] : [])].some((issue) => issue.severity === 'error') ? 'error' : ''
  return (
    <Card title={t('ports.title')} text={t('ports.text')}>
      <Field
        label={t('ports.label')}
        note={t('optional')}
        issue={whole}
        hint={faults.length === 0 ? t('ports.hint', { from: MIN_PORT, to: MAX_PORT, max: MAX_PORTS }) : undefined}
      >
        {(control) => (
          <Select
            {...control}
            className={`${css.mono} ${css.tokens}`}
            status={worst}
            mode="tags"
            open={false}
            suffixIcon={null}
            style={{ maxWidth: 560, width: '100%' }}
            tokenSeparators={[',', ' ', ';', '\n', '\t']}
            placeholder="8080, 6006, 9000:9003"
            value={draft.ports}
            tagRender={({ value, onClose }) => (
              <Tag
                color={isBad(String(value)) ? 'error' : undefined}
                closable
                onClose={onClose}
                className={css.port}
                data-bad={isBad(String(value))}
              >
                {String(value)}
              </Tag>
            )}
            onChange={(tokens: string[]) => change({ ports: tokens.flatMap(splitPorts) })}
          />
        )}
      </Field>
      {faults.length > 0 ? (
        <div className={css.faults}>
          {faults.map((issue) => (
            <IssueLine key={issue.field} issue={issue} />
          ))}
        </div>
      ) : null}
    </Card>
  )
}
