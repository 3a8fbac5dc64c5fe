import { Tooltip } from 'antd'
import { useTranslation } from 'react-i18next'
import { useLatestUsage } from '@/api/hooks'
import type { Session } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { formatLoad } from '@/lib/share'
import { deviceUse } from './deviceUse'
import { loadText } from './loadText'
import css from './SessionsPage.module.css'

/** What a running session uses now of processors, memory and devices, in one line. */
export function UsageCell({ session }: { session: Session }) {
  const { t } = useTranslation('sessions')
  const usage = useLatestUsage(session.id)
  if (session.status !== 'RUNNING' || session.lastHeard || !usage) return <span className={css.dim}>–</span>
  const use = deviceUse(session, usage)
  const { average, memory } = use
  const rows = [
    [t('column.cpu'), usage.cpu.toFixed(1)],
    [t('column.memory'), formatBytes(usage.memory)],
    average === undefined ? null : [t('gpu.load'), loadText(use, t)],
    memory === undefined ? null : [t('gpu.vram'), formatBytes(memory)],
  ].filter((row) => row !== null)
  const tip = (
    <div className={css.tip}>
      {rows.map(([name, value]) => (
        <div key={name}>
          {name}: {value}
        </div>
      ))}
    </div>
  )
  return (
    <Tooltip title={tip} mouseEnterDelay={0.4}>
      <span className={`${css.usage} num`}>
        {usage.cpu.toFixed(1)} <span className={css.dim}>CPU</span> <span className={css.dim}>·</span>{' '}
        {formatBytes(usage.memory)}
        {average === undefined ? null : (
          <>
            {' '}
            <span className={css.dim}>·</span> {formatLoad(average)} <span className={css.dim}>GPU</span>
          </>
        )}
      </span>
    </Tooltip>
  )
}
