import { useTranslation } from 'react-i18next'
import css from './launcher.module.css'
import { AgentField } from './AgentField'
import { Card } from './Card'
import { OwnerField } from './OwnerField'
import type { StepProps } from './StepProps'

/** Where it runs, which decides what images, data and resources there are, and for whom. */
export function MachineCard(props: StepProps) {
  const { t } = useTranslation('launcher')
  return (
    <Card title={t('agent.title')} text={t('agent.text')}>
      <div className={css.two}>
        <AgentField {...props} />
        <OwnerField {...props} />
      </div>
    </Card>
  )
}
