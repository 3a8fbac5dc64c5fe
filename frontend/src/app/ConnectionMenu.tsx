import { Button, Popover } from 'antd'
import { Plug, RotateCw } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate } from 'react-router'
import { call } from '@/api/client'

import { useAgents, useConnection } from '@/api/hooks'
import type { Agent } from '@/api/types.gen'
import { useStartOperation } from '@/api/useOperation'
import { asksCode, formatRtt, isReached, needsPerson } from '@/lib/connection'
import { ConnectionBadge } from '@/ui/ConnectionBadge'
import { RelativeTime } from '@/ui/Times'
import { useReconnect } from './LiveData'
import css from './ConnectionMenu.module.css'

function AgentLine({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const { t } = useTranslation()
  const start = useStartOperation()
  const { state, rttMs, lastHeard, nextTry, error, waits } = agent.connection
  const reached = isReached(agent)
  const why = reached
    ? ''
    : agent.question?.text || (error?.code === asksCode ? t('reach.asks') : error?.message) || waits
  const navigate = useNavigate()
  const asks = needsPerson(agent)
  const page = `/agents/${encodeURIComponent(agent.name)}`
  const connect = () => {
    void start(() => call('agent-reconnect', { path: { agent: agent.name } }))
    if (!asks) return
    onClose()
    void navigate(page) // what it asks is answered there
  }
  return (
    <li className={css.line} data-agent={agent.name}>
      <div className={css.top}>
        <Link to={page} className={css.name} onClick={onClose}>
          {agent.name}
        </Link>
        <ConnectionBadge state={state} />
        <span className={`${css.rtt} num`}>
          {agent.local ? t('reach.local') : reached && rttMs !== undefined ? formatRtt(rttMs) : ''}
        </span>
        {!reached && !agent.question && state !== 'connecting' ? (
          <Button
            size="small"
            type={asks ? 'primary' : 'default'}
            icon={asks ? <Plug size={13} /> : <RotateCw size={13} />}
            aria-label={t(asks ? 'reach.connectOf' : 'reach.retryOf', { agent: agent.name })}
            onClick={connect}
          >
            {t(asks ? 'reach.connect' : 'reach.retry')}
          </Button>
        ) : null}
      </div>
      {why ? <div className={css.text}>{why}</div> : null}
      {reached ? null : (
        <div className={css.text}>
          {lastHeard ? (
            <>
              {t('reach.lastHeard')} <RelativeTime at={lastHeard} />
            </>
          ) : (
            t('reach.never')
          )}
          {nextTry ? (
            <>
              {' · '}
              {t('reach.nextTry')} <RelativeTime at={nextTry} ahead />
            </>
          ) : null}
        </div>
      )}
    </li>
  )
}

/** Whether the page is connected and every agent reached; what each is like on a click. */
export function ConnectionMenu() {
  const { t } = useTranslation()
  const { state } = useConnection()
  const agents = useAgents().data ?? []
  const retry = useReconnect()
  const [open, setOpen] = useState(false)
  const missing = agents.filter((a) => !isReached(a) && a.connection.state !== 'off')
  const asks = agents.some((a) => a.question ?? needsPerson(a))
  const good = state === 'open' && missing.length === 0
  const text =
    state !== 'open'
      ? t(`connection.${state}`)
      : asks
        ? t('reach.question')
        : missing.length > 0
          ? t('reach.missing', { count: missing.length })
          : t('connection.open')
  const close = () => setOpen(false)
  const content = (
    <div className={css.menu}>
      {state === 'open' ? null : (
        <div className={css.page}>
          {t('connection.lostTitle')}
          <Button size="small" onClick={retry}>
            {t('connection.retry')}
          </Button>
        </div>
      )}
      <ul className={css.lines}>
        {agents.map((agent) => (
          <AgentLine key={agent.name} agent={agent} onClose={close} />
        ))}
      </ul>
      <Link to="/agents" className={css.all} onClick={close}>
        {t('reach.all')}
      </Link>
    </div>
  )
  return (
    <Popover
      content={content}
      trigger={['click']}
      placement="bottomRight"
      arrow={false}
      open={open}
      onOpenChange={setOpen}
      styles={{ container: { padding: 0 } }}
    >
      <button type="button" className={css.state} aria-haspopup="dialog" aria-expanded={open}>
        <span className={`${css.dot} ${good ? '' : css.waiting}`} aria-hidden />
        <span aria-live="polite">{text}</span>
      </button>
    </Popover>
  )
}
