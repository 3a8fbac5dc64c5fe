import { useTranslation } from 'react-i18next'
import type { DeviceBoard, Placement } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { formatShare } from '@/lib/share'
import { StackBar, type StackPart } from '@/ui/StackBar'
import { foreignColour, partColour } from '@/ui/palette'
import css from './accelerator.module.css'

interface DeviceMapProps {
  boards: readonly DeviceBoard[]
  placements: readonly Placement[]
  /** The preview is of the draft as it stands. */
  current: boolean
}

/**
 * Each device with what is promised of it, and where this launch would land; with its machine's name where there are
 * several.
 */
export function DeviceMap({ boards, placements, current }: DeviceMapProps) {
  const { t } = useTranslation(['launcher', 'common'])
  const devices = boards.flatMap((board) => board.devices.map((device) => ({ device, machine: board.agent })))
  const several = new Set(devices.map(({ machine }) => machine)).size > 1
  return (
    <ul className={css.map} aria-label={t('launcher:accelerator.map')} style={current ? undefined : { opacity: 0.6 }}>
      {devices.map(({ device, machine }) => {
        const gpu = t('common:gpu.name', { index: device.index })
        const name = several ? `${machine} · ${gpu}` : gpu
        const landing = placements.filter((p) => p.device === device.uuid)
        const share = landing.reduce((sum, p) => sum + p.share, 0)
        const memory = landing.reduce((sum, p) => sum + p.memory, 0)
        const held = device.holders.filter((h) => h.session)
        const foreign = device.holders.filter((h) => !h.session)
        const parts: StackPart[] = held.map((h) => ({
          key: h.session ?? '',
          label: t('launcher:accelerator.held', { name: h.name, share: formatShare(h.share) }),
          value: h.share,
          colour: foreignColour,
        }))
        if (share > 0)
          parts.push({
            key: 'here',
            label: t('launcher:accelerator.here', { share: formatShare(share) }),
            value: share,
            colour: partColour(0),
            ghost: true,
          })
        const taken = foreign.reduce((sum, h) => sum + (h.memory ?? 0), 0)
        return (
          <li key={device.uuid} className={share > 0 ? css.target : undefined} data-landing={share > 0}>
            <span className={css.device}>
              <b>{name}</b>
              <span className={css.model}>{device.model}</span>
            </span>
            <StackBar label={name} parts={parts} total={1000} height={12} />
            <span className={css.room}>
              {share > 0 ? (
                <b className={css.landing}>
                  {t('launcher:accelerator.lands', { share: formatShare(share) })}
                  {memory > 0 ? ` · ${formatBytes(memory)}` : ''}
                </b>
              ) : (
                t(
                  device.free > 0 || device.instances.length > 0
                    ? 'launcher:accelerator.room'
                    : 'launcher:accelerator.full',
                  { share: formatShare(device.free), memory: formatBytes(device.memoryFree) },
                )
              )}
            </span>
            {foreign.length > 0 ? (
              <span className={css.foreign}>
                {t('launcher:accelerator.foreign', {
                  count: foreign.length,
                  name: foreign[0]?.name ?? '',
                  amount: formatBytes(taken),
                })}
              </span>
            ) : null}
          </li>
        )
      })}
    </ul>
  )
}
