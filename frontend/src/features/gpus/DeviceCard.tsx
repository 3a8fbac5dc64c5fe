import { Popover } from 'antd'
import { CircleHelp, CircleMinus, CirclePlus, Info, TriangleAlert } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Capability, DeviceHolder, DeviceState } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { formatBytes } from '@/lib/bytes'
import { formatLoad, formatShare, formatWatts } from '@/lib/share'
import { LevelBadge } from '@/ui/LevelBadge'
import { foreignColour, partColour, reservedColour } from '@/ui/palette'
import { StackBar, type StackPart } from '@/ui/StackBar'
import css from './gpus.module.css'
import { isNeighbour, type MemoryPart, memoryParts, profilesOf, sortHolders } from './holders'

type Numbers = ReadonlyMap<string, number>

const stateIcons = { yes: CirclePlus, no: CircleMinus, unknown: CircleHelp }

function Capabilities({ device }: { device: DeviceState }) {
  const { t } = useTranslation(['gpus', 'common'])
  const row = ({ id, state, why }: Capability) => {
    const Icon = stateIcons[state] ?? CircleHelp
    return (
      <li key={id} data-state={state}>
        <Icon size={13} aria-hidden />
        <span>
          {t(`gpus:capability.${id as 'mig'}`, { defaultValue: id })}: {t(`gpus:probe.${state}`)}
          {why ? <span className={css.dim}> {why}</span> : null}
        </span>
      </li>
    )
  }
  const facts = (
    <div className={css.about}>
      <dl>
        <dt>UUID</dt>
        <dd className={css.mono}>{device.uuid}</dd>
        {device.pci ? (
          <>
            <dt>PCI</dt>
            <dd className={css.mono}>{device.pci}</dd>
          </>
        ) : null}
        {device.driver ? (
          <>
            <dt>{t('gpus:driver')}</dt>
            <dd>{device.driver}</dd>
          </>
        ) : null}
      </dl>
      {device.capabilities.length > 0 ? <ul>{device.capabilities.map(row)}</ul> : null}
    </div>
  )
  return (
    <Popover content={facts} trigger={['click']} placement="bottomRight" arrow={false}>
      <button
        type="button"
        className={css.info}
        aria-label={t('gpus:about', { name: t('common:gpu.name', { index: device.index }) })}
      >
        <Info size={14} aria-hidden />
      </button>
    </Popover>
  )
}

function Metric({ name, value, bar }: { name: string; value: string | undefined; bar?: number }) {
  const { t } = useTranslation('gpus')
  return (
    <div className={css.metric}>
      <div className={css.metricName}>{name}</div>
      <div className={`${css.metricValue} ${value === undefined ? css.untold : ''}`}>{value ?? t('untold')}</div>
      <div className={css.meter} aria-hidden>
        {bar === undefined ? null : <i style={{ width: `${Math.min(100, Math.max(0, bar * 100))}%` }} />}
      </div>
    </div>
  )
}

/** The pieces of the memory bar in words and colours. */
function useParts(): (part: MemoryPart, numbers: Numbers) => StackPart {
  const { t } = useTranslation('gpus')
  return ({ kind, holder, bytes }, numbers) => {
    const amount = formatBytes(bytes)
    const name = holder?.name ?? ''
    const colour =
      kind === 'session' || kind === 'unclaimed'
        ? partColour(numbers.get(holder?.session ?? '') ?? 0)
        : kind === 'reserved'
          ? reservedColour
          : foreignColour
    const label =
      kind === 'foreign'
        ? t('part.foreign', { name, pid: holder?.pid ?? '–', owner: holder?.owner ?? '–', amount })
        : t(`part.${kind}`, { name, amount })
    return {
      key: `${kind}${holder?.session ?? holder?.pid ?? holder?.name ?? ''}`,
      label,
      value: bytes,
      colour,
      hatched: kind === 'foreign' || kind === 'other' || kind === 'neighbour',
      ghost: kind === 'unclaimed',
    }
  }
}

function Holder({ holder, numbers }: { holder: DeviceHolder; numbers: Numbers }) {
  const { t } = useTranslation('gpus')
  const actions = useSessionActions()
  const { session } = holder
  const memory = holder.memory === undefined ? '–' : formatBytes(holder.memory)
  return (
    <tr>
      <td>
        <span className={css.holder}>
          <i
            className={session ? css.swatch : `${css.swatch} ${css.foreign}`}
            style={session ? { background: partColour(numbers.get(session) ?? 0) } : undefined}
            aria-hidden
          />
          {session ? (
            <button type="button" className={css.link} onClick={() => actions.showDetail(session)}>
              {holder.name}
            </button>
          ) : (
            <span className={css.cut} title={holder.name}>
              {holder.name || t('process')}{' '}
              {isNeighbour(holder) ? null : <span className={css.dim}>pid {holder.pid ?? '–'}</span>}
            </span>
          )}
        </span>
      </td>
      <td className={css.owner}>{holder.owner || '–'}</td>
      <td className="num">
        {session || isNeighbour(holder) ? (
          formatShare(holder.share)
        ) : (
          <span className={css.dim}>{t('notSession')}</span>
        )}
      </td>
      <td className="num">
        {memory}
        {(session || isNeighbour(holder)) && holder.promised ? (
          <span className={css.dim}> / {formatBytes(holder.promised)}</span>
        ) : null}
      </td>
      <td className="num">
        {holder.util === undefined ? <span className={css.dim}>–</span> : formatLoad(holder.util)}
      </td>
    </tr>
  )
}

function Holders({ device, numbers }: { device: DeviceState; numbers: Numbers }) {
  const { t } = useTranslation('gpus')
  if (device.holders.length === 0) return <div className={css.nobody}>{t('nobody')}</div>
  return (
    <table className={css.holders}>
      <thead>
        <tr>
          <th>{t('holder')}</th>
          <th>{t('owner')}</th>
          <th>{t('share')}</th>
          <th>{t('vram')}</th>
          <th>{t('load')}</th>
        </tr>
      </thead>
      <tbody>
        {sortHolders(device.holders).map((holder) => (
          <Holder key={holder.session ?? holder.pid ?? holder.name} holder={holder} numbers={numbers} />
        ))}
      </tbody>
    </table>
  )
}

interface DeviceCardProps {
  device: DeviceState
  numbers: Numbers
  /** What is shown is from earlier. */
  stale: boolean
}

/** One device as it is now: its load, who holds its memory, and who may. */
export function DeviceCard({ device, numbers, stale }: DeviceCardProps) {
  const { t } = useTranslation(['gpus', 'common'])
  const toPart = useParts()
  const { memory, memoryUsed, util, power, temperature } = device
  const name = t('common:gpu.name', { index: device.index })
  const used = memoryUsed === undefined ? undefined : formatBytes(memoryUsed)
  return (
    <article
      className={`${css.card} ${stale ? css.stale : ''}`}
      aria-label={`${name}, ${device.model}`}
      data-device={device.uuid}
    >
      <header className={css.head}>
        <h2>{name}</h2>
        <span className={css.model} title={device.model}>
          {device.model}
        </span>
        <span className={css.headEnd}>
          <LevelBadge level={device.level} />
          <Capabilities device={device} />
        </span>
      </header>
      {device.lost ? (
        <div className={css.trouble} role="status">
          <TriangleAlert size={15} aria-hidden />
          <span>
            <b>{t(`gpus:loss.${device.lost.kind as 'fallen'}`, { defaultValue: device.lost.why })}</b>{' '}
            {t('gpus:lossText')} <span className={css.dim}>{device.lost.hint}</span>
          </span>
        </div>
      ) : device.unread ? (
        <div className={css.trouble} role="status">
          <TriangleAlert size={15} aria-hidden />
          <span>
            <b>{t('gpus:unread')}</b> {t('gpus:unreadText')}
          </span>
        </div>
      ) : device.over ? (
        <div className={css.trouble} role="status">
          <TriangleAlert size={15} aria-hidden />
          <span>
            <b>{t('gpus:over')}</b> {t('gpus:overText')} <span className={css.dim}>{device.over}</span>
          </span>
        </div>
      ) : null}
      <div className={css.metrics}>
        <Metric
          name={t('gpus:load')}
          value={util === undefined ? undefined : formatLoad(util)}
          {...(util === undefined ? {} : { bar: util / 10_000 })}
        />
        <Metric
          name={t('gpus:free')}
          value={t('gpus:freeShare', { share: formatShare(device.free) })}
          {...(device.lost || device.unread ? {} : { bar: 1 - device.free / 1000 })}
        />
        <Metric name={t('gpus:power')} value={power === undefined ? undefined : formatWatts(power)} />
        <Metric name={t('gpus:temperature')} value={temperature === undefined ? undefined : `${temperature} °C`} />
      </div>
      <div className={css.memory}>
        <div className={css.memoryText}>
          <span>{t('gpus:vram')}</span>
          <span className="num">
            {used === undefined
              ? t('gpus:untold')
              : t('gpus:usedOf', { used, total: memory ? formatBytes(memory) : '–' })}
            <span className={css.dim}> · {t('gpus:memoryFree', { amount: formatBytes(device.memoryFree) })}</span>
          </span>
        </div>
        <StackBar
          label={`${t('gpus:vram')} ${name}`}
          parts={memoryParts(device).map((part) => toPart(part, numbers))}
          total={memory}
          height={14}
        />
      </div>
      {device.instances.length > 0 ? (
        <div className={css.instances}>
          <span className={css.dim}>{t('gpus:instances')}</span>
          {profilesOf(device).map(({ profile, count, memory: each }) => (
            <span key={profile} className="num">
              {count} × {profile} <span className={css.dim}>{formatBytes(each)}</span>
            </span>
          ))}
        </div>
      ) : null}
      <Holders device={device} numbers={numbers} />
    </article>
  )
}
