import { useTranslation } from 'react-i18next'
import { messageText, type Told } from '@/lib/phrases'
import { useSecondsUntil } from '@/lib/seconds'

interface EndingTextProps {
  /** An api Ending fits. */
  ending: { at: string; error?: Told }
}

/** When a session is terminated unless this is undone, or why it was not. */
export function EndingText({ ending }: EndingTextProps) {
  const { t } = useTranslation()
  const seconds = useSecondsUntil(ending.at)
  if (ending.error) return t('ending.failed', { why: messageText(ending.error) })
  return seconds > 0 ? t('ending.in', { seconds }) : t('ending.now')
}
