import { Button } from 'antd'
import { Copy, MoveRight } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { call } from '@/api/client'
import { useFolders } from '@/api/folders'
import { useAgents, useOperations } from '@/api/hooks'
import { useOperationActions, useStartOperation } from '@/api/useOperation'
import type { Operation } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { isReached } from '@/lib/connection'
import { isRunning } from '@/lib/operation'
import { OperationView } from '@/ui/OperationView'
import css from './launcher.module.css'
import { type Away, copyName } from './away'
import { useIsCopyOf } from './useArrivals'

interface CopyFolderProps {
  away: Away
  /** Takes the folder of that name which is there. */
  onUse: (name: string) => void
  /** Has the session run where the folder is. */
  onMove: (agent: string) => void
}

/** What can be done about a folder that is on another machine: copy it, use another, or run the session there. */
export function CopyFolder({ away, onUse, onMove }: CopyFolderProps) {
  const { t } = useTranslation('launcher')
  const { folder, to, twin, begun } = away
  const taken = (useFolders().data ?? []).filter((f) => f.agent === to).map((f) => f.name)
  const isCopyOf = useIsCopyOf()
  const copies = (useOperations().data ?? []).filter((o) => o.agent === to && isCopyOf(o, folder.name, folder.agent))
  const last = copies.toSorted((a, b) => b.startedAt.localeCompare(a.startedAt))[0]
  const agents = useAgents().data ?? []
  const start = useStartOperation()
  const name = copyName(folder.name, taken)
  const copy = () =>
    start(() => call('file-copy', { body: { from: { folder: folder.id }, to: { folder: name, agent: to } } }))
  const cut = agents.find((a) => (a.name === to || a.name === folder.agent) && !isReached(a))
  if (last && isRunning(last)) {
    return (
      <div className={`${css.sending} ${css.offer}`}>
        {cut ? <div className={css.fact}>{t('copy.cut', { agent: cut.name })}</div> : null}
        <Copying operation={last} />
      </div>
    )
  }
  const size = folder.usage ? t('copy.size', { amount: formatBytes(folder.usage.bytes) }) : ''
  const label = begun ? 'copy.resume' : name === folder.name ? 'copy.start' : 'copy.startAs'
  return (
    <div className={`${css.sending} ${css.offer}`}>
      {last?.state === 'failed' ? <Copying operation={last} /> : null}
      {twin ? <div className={css.fact}>{t('copy.twin', { to, name: folder.name })}</div> : null}
      <div className={css.buttons}>
        {twin ? (
          <Button size="small" onClick={() => onUse(folder.name)}>
            {t('copy.use', { to })}
          </Button>
        ) : null}
        <Button size="small" icon={<Copy size={13} />} onClick={() => void copy()}>
          {t(label, { to, name })}
          {size}
        </Button>
        <Button size="small" icon={<MoveRight size={13} />} onClick={() => onMove(folder.agent)}>
          {t('copy.runOn', { agent: folder.agent })}
        </Button>
      </div>
    </div>
  )
}

function Copying({ operation }: { operation: Operation }) {
  return <OperationView operation={operation} {...useOperationActions(operation.id)} />
}
