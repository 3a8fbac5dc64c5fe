import { Button, Tooltip } from 'antd'
import { ScrollText, SquareTerminal } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { useDevices } from '@/api/hooks'
import type { Grant, Kernel, Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { formatBytes } from '@/lib/bytes'
import { formatShare } from '@/lib/share'
import { CopyButton } from '@/ui/CopyButton'
import { StatusBadge } from '@/ui/StatusBadge'
import { cpuRanges } from './cpuRanges'
import css from './SessionDrawer.module.css'

/** Returns what names a granted part of a device: "GPU 0", a MIG instance by its profile. */
export function useGrantName(agent: string): (grant: { device: string; instance?: string }) => string {
  const { t } = useTranslation()
  const board = useDevices().data?.find((b) => b.agent === agent)
  return ({ device, instance }) => {
    const found = board?.devices.find((d) => d.uuid === device)
    const name = found ? t('gpu.name', { index: found.index }) : device.slice(0, 12)
    const profile = instance ? found?.instances.find((i) => i.uuid === instance)?.profile : undefined
    return profile ? `${name} · ${profile}` : name
  }
}

/** Devices by their names, GPU 2 before GPU 10. */
export function inOrder<T>(devices: readonly T[], nameOf: (device: T) => string): T[] {
  return devices.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b), undefined, { numeric: true }))
}

/** Parts of devices: which, how much of each, and its memory. */
export function Grants({ grants, agent }: { grants: readonly Grant[]; agent: string }) {
  const { t } = useTranslation('session')
  const nameOf = useGrantName(agent)
  return (
    <div className={css.chips}>
      {inOrder(grants, nameOf).map((grant) => (
        <Tooltip
          key={`${grant.device}${grant.instance ?? ''}`}
          title={`${grant.instance ?? grant.device}${grant.whole ? ` · ${t('gpu.whole')}` : ''}`}
        >
          <span className={css.grant}>
            {nameOf(grant)} <b>{formatShare(grant.share)}</b>
            {grant.memory ? <span className={css.dim}>{formatBytes(grant.memory)}</span> : null}
          </span>
        </Tooltip>
      ))}
    </div>
  )
}

function Buttons({ session, kernel }: { session: Session; kernel: Kernel }) {
  const { t } = useTranslation('session')
  const actions = useSessionActions()
  return (
    <span className={css.rowButtons}>
      <Tooltip title={t('kernel.logs', { name: kernel.name })}>
        <Button
          type="text"
          size="small"
          aria-label={t('kernel.logs', { name: kernel.name })}
          icon={<ScrollText size={14} />}
          onClick={() => actions.showLogs(session.id, kernel.name)}
        />
      </Tooltip>
      <Tooltip title={t('kernel.terminal', { name: kernel.name })}>
        <Button
          type="text"
          size="small"
          disabled={kernel.status !== 'RUNNING'}
          aria-label={t('kernel.terminal', { name: kernel.name })}
          icon={<SquareTerminal size={14} />}
          onClick={() => actions.openTerminal(session.id, kernel.name)}
        />
      </Tooltip>
    </span>
  )
}

/** The containers of a session with what each was granted, its log and its terminal. */
export function Kernels({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  if (session.kernels.length === 0) return null
  const devices = session.kernels.some((k) => k.grants.gpus.length > 0)
  const nodes = session.kernels.some((k) => k.node)
  const granted = (kernel: Kernel) =>
    [
      kernel.grants.cpus.length > 0 ? t('fact.cpus', { list: cpuRanges(kernel.grants.cpus) }) : '',
      kernel.grants.memory ? formatBytes(kernel.grants.memory) : '',
    ]
      .filter(Boolean)
      .join(' · ')
  return (
    <section>
      <div className={css.sectionHead}>
        <h3>{t('section.kernels')}</h3>
      </div>
      <table className={css.grid}>
        <thead>
          <tr>
            <th>{t('kernel.name')}</th>
            <th>{t('kernel.hostname')}</th>
            {nodes ? <th>{t('kernel.node')}</th> : null}
            <th>{t('kernel.status')}</th>
            <th>{t('kernel.granted')}</th>
            {devices ? <th>{t('kernel.devices')}</th> : null}
            <th>{t('kernel.container')}</th>
            <th>
              <span className="unseen">{t('action.more')}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {session.kernels.map((kernel) => (
            <tr key={kernel.name}>
              <td>{kernel.name}</td>
              <td className={css.mono}>{kernel.hostname || '–'}</td>
              {nodes ? <td className={css.mono}>{kernel.node || '–'}</td> : null}
              <td>
                <span className={css.kernelStatus}>
                  <StatusBadge status={kernel.status} failed={Boolean(kernel.exitCode)} />
                  {kernel.exitCode ? (
                    <span className={css.dim}>{t('kernel.exited', { code: kernel.exitCode })}</span>
                  ) : null}
                </span>
              </td>
              <td className="num">{granted(kernel) || '–'}</td>
              {devices ? (
                <td>
                  {kernel.grants.gpus.length > 0 ? <Grants grants={kernel.grants.gpus} agent={session.agent} /> : '–'}
                </td>
              ) : null}
              <td>
                <span className={css.copyable}>
                  <span className={css.mono}>{kernel.container.replace(/^slipway-/, '').slice(0, 8) || '–'}</span>
                  {kernel.container ? <CopyButton text={kernel.container} /> : null}
                </span>
              </td>
              <td>
                <Buttons session={session} kernel={kernel} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
