import { InputNumber } from 'antd'
import { useTranslation } from 'react-i18next'
import { MAX_CLUSTER, MAX_LAUNCHES } from '@/api/rules.gen'
import css from './accelerator.module.css'
import { Card } from './Card'
import { Field } from './Field'
import type { StepProps } from './StepProps'

/** How many sessions at once, and of how many containers each, on as many nodes where it is a cluster of Slurm. */
export function ManyCard({ draft, issues, change, nodes }: StepProps & { nodes: boolean }) {
  const { t } = useTranslation('launcher')
  const { count, cluster } = draft
  return (
    <Card title={t('many.title')}>
      <div className={css.grid}>
        <Field
          label={t('many.count')}
          issue={issues.at('count')}
          hint={t((count ?? 1) > 1 ? (draft.name ? 'many.countNamed' : 'many.countMany') : 'many.countOne', {
            count: count ?? 1,
            name: draft.name,
          })}
        >
          {(control) => (
            <InputNumber
              {...control}
              style={{ width: 120 }}
              min={0}
              max={MAX_LAUNCHES}
              value={count}
              onChange={(value) => change({ count: value })}
            />
          )}
        </Field>
        <Field
          label={t(nodes ? 'slurm.nodes' : 'many.cluster')}
          issue={issues.at('cluster')}
          hint={t((cluster ?? 1) > 1 ? (nodes ? 'slurm.nodesMany' : 'many.clusterMany') : 'many.clusterOne', {
            last: `sub${(cluster ?? 1) - 1}`,
          })}
        >
          {(control) => (
            <InputNumber
              {...control}
              style={{ width: 120 }}
              min={0}
              max={MAX_CLUSTER}
              value={cluster}
              onChange={(value) => change({ cluster: value })}
            />
          )}
        </Field>
      </div>
    </Card>
  )
}
