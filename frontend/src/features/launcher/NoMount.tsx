import { Checkbox } from 'antd'
import { useTranslation } from 'react-i18next'
import { formatLength } from '@/lib/time'
import { START_KEEP } from './home'
import { writeSpan } from './queueDraft'

/** Says before a launch that the home is deleted with the session, and offers to keep it. */
export function NoMount({ onKeep }: { onKeep: (keep: boolean) => void }) {
  const { t } = useTranslation('launcher')
  return (
    <>
      <p>{t('noMount.text')}</p>
      <Checkbox onChange={(event) => onKeep(event.target.checked)}>
        {t('noMount.keep', { time: formatLength(writeSpan(START_KEEP)) })}
      </Checkbox>
    </>
  )
}
