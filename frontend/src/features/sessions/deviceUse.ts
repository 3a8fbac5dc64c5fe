import type { Session, Usage } from '@/api/types.gen'

interface DeviceUse {
  /** Time with its work on devices, in hundredths of a percent of one device, over all; undefined where none tells. */
  load: number | undefined
  /** Bytes held on all devices. */
  memory: number | undefined
  /** Thousandths of devices granted. */
  granted: number
  /** Bytes promised. */
  promised: number
}

/** What a session holds of devices and makes of it. What a device does not tell is not taken for 0. */
export function deviceUse(session: Session, usage: Usage | undefined): DeviceUse {
  const told = (values: (number | undefined)[]) => {
    const known = values.filter((v) => v !== undefined)
    return known.length > 0 ? known.reduce((sum, v) => sum + v, 0) : undefined
  }
  return {
    load: told((usage?.gpus ?? []).map((g) => g.util)),
    memory: told((usage?.gpus ?? []).map((g) => g.memory)),
    granted: session.grants.gpus.reduce((sum, g) => sum + g.share, 0),
    promised: session.grants.gpus.reduce((sum, g) => sum + g.memory, 0),
  }
}
