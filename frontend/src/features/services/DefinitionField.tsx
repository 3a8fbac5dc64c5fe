import { Button } from 'antd'
import { CircleAlert, CircleCheck, FileText } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { type ApiProblem, asProblem } from '@/api/client'
import { useReadDefinition } from '@/api/services'
import type { ModelDefinition } from '@/api/types.gen'
import { messageText } from '@/lib/phrases'
import type { Draft } from './draft'
import css from './form.module.css'
import { parseSpan } from './span'
import { joinWords } from './words'

/** What a definition fills in. What it does not say is as its runtime has it. */
function entriesOf({ serving }: ModelDefinition): Partial<Draft> {
  const { command, port, models, preStart, health } = serving
  return {
    command: command ? joinWords(command) : null,
    port,
    served: (models ?? []).join(', '),
    health: health?.path ?? null,
    delay: parseSpan(health?.initialDelay ?? '') ?? null,
    rest: { ...(preStart ? { preStart } : {}), ...(health ? { health } : {}) },
  }
}

interface DefinitionFieldProps {
  draft: Draft
  change: (change: Partial<Draft>) => void
}

/** Fills in the form from the model-definition.yaml of the folder, or tells what is wrong in which line. */
export function DefinitionField({ draft, change }: DefinitionFieldProps) {
  const { t } = useTranslation('services')
  const read = useReadDefinition()
  const place = { agent: draft.agent, folder: draft.folder, path: draft.path }
  // An answer about another folder says nothing.
  const current =
    read.variables?.folder === place.folder &&
    read.variables.path === place.path &&
    read.variables.agent === place.agent
  const actions = draft.rest.preStart ?? []
  return (
    <div className={css.definition}>
      <div className={css.inline}>
        <Button
          icon={<FileText size={14} />}
          disabled={!draft.folder}
          loading={read.isPending}
          onClick={() => read.mutate(place, { onSuccess: (definition) => change(entriesOf(definition)) })}
        >
          {t('definition.read')}
        </Button>
        {actions.length > 0 ? (
          <>
            <span className={css.fact}>{t('definition.actions', { count: actions.length })}</span>
            <Button
              type="link"
              size="small"
              onClick={() => change({ rest: draft.rest.health ? { health: draft.rest.health } : {} })}
            >
              {t('definition.removeActions')}
            </Button>
          </>
        ) : null}
      </div>
      {current && read.error ? (
        <Mistakes problem={asProblem(read.error)} />
      ) : current && read.data ? (
        <p className={css.filled} role="status">
          <CircleCheck size={13} aria-hidden />
          <span>{t('definition.filled', { file: read.data.file })}</span>
        </p>
      ) : (
        <p className={css.fact}>{t('definition.hint')}</p>
      )}
    </div>
  )
}

function Mistakes({ problem }: { problem: ApiProblem }) {
  return (
    <div className={css.mistakes} role="alert">
      <p>
        <CircleAlert size={13} aria-hidden />
        <span>{[messageText(problem), problem.hint].filter(Boolean).join(' ')}</span>
      </p>
      {problem.fields.length > 0 ? (
        <ul>
          {problem.fields.map((one, i) => (
            <li key={i}>
              <code>{one.field}</code>
              <span>{[messageText(one), one.hint].filter(Boolean).join(' ')}</span>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}
