import { Button } from 'antd'
import { ArrowUpCircle, ChevronRight, CircleHelp, LoaderCircle } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Agent } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { asksCode, formatRtt, isReached, needsPerson } from '@/lib/connection'
import { ConnectionBadge } from '@/ui/ConnectionBadge'
import { useOperationTitle } from '@/ui/OperationView'
import { ResourceBar } from '@/ui/ResourceBar'
import { RelativeTime } from '@/ui/Times'
import css from './agents.module.css'
import type { Row } from './join'
import { UntrustedAlert } from './UntrustedAlert'
import { useAgentActions } from './useAgentActions'

function Meter({
  label,
  used,
  total,
  promised,
  load,
  max,
}: {
  label: string
  used: string
  total: string
  promised: number
  load?: number | undefined
  max: number
}) {
  return (
    <div className={css.meter}>
      <div className={css.meterText}>
        <span>{label}</span>
        <span className="num">
          {max > 0 ? used : '–'} {max > 0 ? <span className={css.dim}>/ {total}</span> : null}
        </span>
      </div>
      <ResourceBar
        label={`${label}: ${used} / ${total}`}
        promised={promised}
        total={max}
        {...(load === undefined ? {} : { load })}
      />
    </div>
  )
}

/** What an agent's machine has and has promised: CPUs, memory, GPUs, and its disk. */
export function Meters({ row }: { row: Row }) {
  const { t } = useTranslation('agents')
  const { machine, total, promised, load } = row
  if (!machine) return <div className={css.dim}>{t('unknownMachine')}</div>
  const gpus = total?.gpu ?? 0
  const inSlurm = machine.slurm?.partitions.some((p) => p.gpus?.length)
  const used = machine.diskTotal - machine.diskFree
  const round = (n: number) => String(Math.round(n * 10) / 10)
  return (
    <div className={css.meters}>
      <Meter
        label={t('resource.cpu')}
        used={round(machine.usedCpus)}
        total={String(machine.cpus)}
        promised={machine.usedCpus}
        load={machine.loadCpu}
        max={machine.cpus}
      />
      <Meter
        label={t('resource.memory')}
        used={formatBytes(machine.usedMemory)}
        total={formatBytes(machine.memory)}
        promised={machine.usedMemory}
        load={machine.loadMemory}
        max={machine.memory}
      />
      {gpus > 0 ? (
        <Meter
          label={t('resource.gpu')}
          used={round((promised?.gpu ?? 0) / 1000)}
          total={round(gpus / 1000)}
          promised={promised?.gpu ?? 0}
          load={load?.gpu}
          max={gpus}
        />
      ) : (
        <div className={css.meter}>
          <div className={css.meterText}>
            <span>{t('resource.gpu')}</span>
            <span className={css.dim}>{total ? t(inSlurm ? 'resource.byPartition' : 'resource.noGpu') : '–'}</span>
          </div>
        </div>
      )}
      <Meter
        label={t('resource.disk')}
        used={formatBytes(used)}
        total={formatBytes(machine.diskTotal)}
        promised={used}
        max={machine.diskTotal}
      />
    </div>
  )
}

/** When an agent was heard last: what is shown of it is as old as that. */
function LastHeard({ agent }: { agent: Agent }) {
  const { t } = useTranslation()
  const at = agent.connection.lastHeard
  if (!at) return <>{t('reach.never')}</>
  const [before, after] = t('reach.heard', { when: '\u0000' }).split('\u0000')
  return (
    <span>
      {before}
      <RelativeTime at={at} />
      {after}
    </span>
  )
}

/** One agent: how it is reached, its machine, and what is to be done about it. */
export function AgentCard({ row, onOpen }: { row: Row; onOpen: () => void }) {
  const { t } = useTranslation(['agents', 'common'])
  const { agent, machine, operation } = row
  const { connection } = agent
  const actions = useAgentActions(agent.name)
  const title = useOperationTitle()
  const reached = isReached(agent)
  const asks = needsPerson(agent)
  const connect = () => {
    actions.reconnect()
    if (asks) onOpen() // what it asks is answered there
  }
  return (
    <article className={`${css.card} ${reached ? '' : css.unreached}`} aria-label={agent.name} data-agent={agent.name}>
      <div className={css.head}>
        <button type="button" className={css.name} onClick={onOpen}>
          {agent.name}
        </button>
        <ConnectionBadge state={connection.state} />
        <span className={css.end}>
          {agent.upgrade && reached ? (
            <Button
              size="small"
              icon={<ArrowUpCircle size={14} />}
              disabled={Boolean(operation)}
              onClick={actions.upgrade}
            >
              {t('agents:upgradeTo', { version: agent.upgrade })}
            </Button>
          ) : null}
          {!reached && !agent.question && connection.state !== 'connecting' ? (
            <Button size="small" type={asks ? 'primary' : 'default'} onClick={connect} disabled={Boolean(operation)}>
              {t(asks ? 'agents:connect' : 'agents:retryNow')}
            </Button>
          ) : null}
          <Button
            type="text"
            size="small"
            aria-label={t('agents:open', { name: agent.name })}
            icon={<ChevronRight size={16} />}
            onClick={onOpen}
          />
        </span>
      </div>
      <div className={css.where}>
        <span>{agent.local ? t('common:reach.local') : <code>{agent.address}</code>}</span>
        {machine ? (
          <span className={css.host}>
            {[machine.hostname, `${machine.os}/${machine.arch}`, t(`common:engine.${machine.engine}`)].join(' · ')}
          </span>
        ) : null}
      </div>
      <UntrustedAlert agent={agent} brief />
      {agent.question ? (
        <button type="button" className={css.asks} onClick={onOpen}>
          <CircleHelp size={15} aria-hidden />
          <span>{agent.question.text}</span>
          <b>{t('agents:decide')}</b>
        </button>
      ) : !reached && (connection.error || connection.waits) ? (
        <div className={css.why}>
          {connection.error?.code === asksCode ? t('agents:asks') : connection.error?.message || connection.waits}
        </div>
      ) : null}
      {operation ? (
        <button type="button" className={css.busy} onClick={onOpen}>
          <LoaderCircle size={14} aria-hidden className={css.turn} />
          <span>{title(operation)}</span>
          {operation.state === 'waiting' ? <b>{t('common:operation.state.waiting')}</b> : null}
        </button>
      ) : null}
      <Meters row={row} />
      <div className={`${css.facts} num`}>
        <span>{t('agents:sessions', { count: agent.live })}</span>
        {reached && connection.rttMs !== undefined ? (
          <span>{t('agents:rtt', { rtt: formatRtt(connection.rttMs) })}</span>
        ) : null}
        {agent.version ? <span>{agent.version}</span> : null}
        {agent.role && !agent.local ? (
          <span>{t(`agents:role.${agent.role as 'user'}`, { defaultValue: agent.role })}</span>
        ) : null}
        <span className={css.heard}>{agent.local ? null : <LastHeard agent={agent} />}</span>
      </div>
    </article>
  )
}
