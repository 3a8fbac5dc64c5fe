import type { Session, Usage } from '@/api/types.gen'

interface DeviceUse {
  /** Time with its work on devices, in hundredths of a percent of one device, over all; undefined where none tells. */
  load: number | undefined
  /** How many devices tell it. */
  devices: number
  /** The same of one device on average, at most 100 %. */
  average: number | undefined
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
  const loads = (usage?.gpus ?? []).filter((g) => g.util !== undefined)
  const devices = new Set(loads.map((g) => g.device)).size
  const sum = told(loads.map((g) => g.util))
  // Two samples of one moment may overlap a little: no device works more than all of the time.
  const load = sum === undefined ? undefined : Math.min(sum, devices * 10_000)
  return {
    load,
    devices,
    average: load === undefined ? undefined : load / devices,
    memory: told((usage?.gpus ?? []).map((g) => g.memory)),
    granted: session.grants.gpus.reduce((sum, g) => sum + g.share, 0),
    promised: session.grants.gpus.reduce((sum, g) => sum + g.memory, 0),
  }
}
