import { Button } from 'antd'
import { Plus } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { MAX_RULES } from '@/api/rules.gen'
import type { RuleState } from '@/api/types.gen'
import { RuleEditor } from './RuleEditor'
import css from './rules.module.css'
import { FIRST_RULE, type RuleDraft } from './rules'

interface RulesEditorProps {
  rules: RuleDraft[]
  /** What the rules of the service do now, while none was changed here. */
  states?: RuleState[] | undefined
  tried: boolean
  onChange: (rules: RuleDraft[]) => void
}

/** The rules that change the number of replicas. The first that matches decides. */
export function RulesEditor({ rules, states, tried, onChange }: RulesEditorProps) {
  const { t } = useTranslation('services')
  return (
    <>
      {rules.length > 0 ? (
        <ol className={css.rules}>
          {rules.map((rule, at) => (
            <RuleEditor
              // Rules have no names, and are only appended and removed.
              key={`${at}/${rules.length}`}
              number={at + 1}
              rule={rule}
              state={states?.[at]}
              tried={tried}
              onChange={(what) => onChange(rules.map((one, i) => (i === at ? { ...one, ...what } : one)))}
              onRemove={() => onChange(rules.filter((_, i) => i !== at))}
            />
          ))}
        </ol>
      ) : null}
      {rules.length < MAX_RULES ? (
        <Button className={css.add ?? ''} icon={<Plus size={15} />} onClick={() => onChange([...rules, FIRST_RULE])}>
          {t('rule.add')}
        </Button>
      ) : null}
    </>
  )
}
