import { Button } from 'antd'
import { TriangleAlert, Unplug } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { useAgents, useConnection, useMachines } from '@/api/hooks'
import type { Machine, Warning } from '@/api/types.gen'
import { tellsOfNoDocker } from '@/features/demo/lacksDocker'
import { SeeDemo } from '@/features/demo/SeeDemo'
import { formatRelative, past } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import css from './Shell.module.css'

function WarningLine({
  warning,
  agent,
  local,
  onHide,
}: {
  warning: Warning
  agent: string
  local: boolean
  onHide: () => void
}) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  return (
    <div className={css.banner} role="alert">
      <TriangleAlert size={16} aria-hidden />
      <div className={css.bannerWords}>
        <strong>{agent ? `${agent}: ${warning.title}` : warning.title}</strong>{' '}
        <span className={css.bannerText}>{warning.text}</span>
      </div>
      {local && tellsOfNoDocker(warning) ? <SeeDemo size="small" /> : null}
      <Button size="small" onClick={() => void navigate(agent ? `/agents/${encodeURIComponent(agent)}` : '/settings')}>
        {t('machine.checks')}
      </Button>
      <Button size="small" type="text" onClick={onHide}>
        {t('machine.dismiss')}
      </Button>
    </div>
  )
}

function Offline({ machine }: { machine: Machine }) {
  const { t } = useTranslation()
  const now = useNow()
  return (
    <div className={css.banner} role="alert">
      <Unplug size={16} aria-hidden />
      <div className={css.bannerWords}>
        <strong>{t('machine.offline', { agent: machine.agent })}</strong>{' '}
        <span className={css.bannerText}>
          {t('machine.offlineText', { when: formatRelative(past(machine.lastHeard, now), now) })}
        </span>
      </div>
    </div>
  )
}

/**
 * Trouble of a machine that stands: the engine is silent, the agent offline. One that was hidden comes back when it
 * begins anew.
 */
export function MachineBanner() {
  const machines = useMachines().data ?? []
  const agents = useAgents().data ?? []
  const connected = useConnection().state === 'open'
  const [hidden, setHidden] = useState<string[]>([])
  // Of the others the connection state tells, and every view that shows them.
  const isLocal = (machine: Machine) => agents.find((a) => a.name === machine.agent)?.local ?? true
  return machines.map((machine) => (
    <div key={machine.agent}>
      {connected && !machine.online && isLocal(machine) ? <Offline machine={machine} /> : null}
      {machine.warnings.map((warning) => {
        const key = `${machine.agent} ${warning.code} ${warning.at}`
        return hidden.includes(key) ? null : (
          <WarningLine
            key={key}
            warning={warning}
            agent={machines.length > 1 ? machine.agent : ''}
            local={isLocal(machine)}
            onHide={() => setHidden([...hidden, key])}
          />
        )
      })}
    </div>
  ))
}
