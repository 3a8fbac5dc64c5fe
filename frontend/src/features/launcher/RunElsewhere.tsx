import { Button } from 'antd'
import { MoveRight } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useFolders } from '@/api/folders'
import { useDevices } from '@/api/hooks'
import css from './launcher.module.css'
import { elsewhere } from './accelerator'
import { movedTo } from './away'
import type { StepProps } from './StepProps'

/** The other machines that have the devices which the chosen one never has. */
export function RunElsewhere({ draft, change }: Pick<StepProps, 'draft' | 'change'>) {
  const { t } = useTranslation('launcher')
  const folders = useFolders().data ?? []
  const others = elsewhere(draft.accelerator, useDevices().data ?? [], draft.agent)
  if (others.length === 0) return null
  return (
    <div className={css.sending}>
      <div className={css.fact}>
        {t('copy.enough')}{' '}
        {draft.mounts.some((m) => m.folder !== undefined) ? t('copy.later', { step: t('step.storage') }) : null}
      </div>
      <div className={css.buttons}>
        {others.map((agent) => (
          <Button
            key={agent}
            size="small"
            icon={<MoveRight size={13} />}
            onClick={() => change((old) => movedTo(old, { agent, group: '' }, folders))}
          >
            {t('copy.runOn', { agent })}
          </Button>
        ))}
      </div>
    </div>
  )
}
