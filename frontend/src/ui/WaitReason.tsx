import { useTranslation } from 'react-i18next'
import { estimateText, waitTexts, type Waits } from '@/lib/phrases'

/** Why a session waits and when it starts, with the details folded. */
export function WaitReason({ wait, machine }: { wait: Waits; machine: string | undefined }) {
  const { t } = useTranslation()
  const { lead, details } = waitTexts(wait, machine)
  return (
    <>
      <div>{lead}</div>
      <div>{t('wait.start', { estimate: estimateText(wait) })}</div>
      {details ? (
        <details>
          <summary>{t('wait.details')}</summary>
          {details}
        </details>
      ) : null}
    </>
  )
}
