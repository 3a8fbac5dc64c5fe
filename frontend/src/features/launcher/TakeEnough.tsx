import { Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { formatBytes } from '@/lib/bytes'
import { type Amount, amountFromBytes, amountToBytes } from './amount'
import { enoughFor } from './lastRun'

interface TakeEnoughProps {
  /** Bytes that the last run used at one time. */
  peak: number
  asked: Amount
  take: (amount: Amount) => void
}

/** A button that asks for what is enough, where more is asked for. */
export function TakeEnough({ peak, asked, take }: TakeEnoughProps) {
  const { t } = useTranslation('launcher')
  const enough = enoughFor(peak)
  if (enough >= (amountToBytes(asked) ?? 0)) return null
  return (
    <Button type="link" size="small" onClick={() => take(amountFromBytes(enough))}>
      {t('resources.useAmount', { amount: formatBytes(enough) })}
    </Button>
  )
}
