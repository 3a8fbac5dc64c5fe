import type { Accelerator, DeviceState, Session } from '@/api/types.gen'

export interface Smaller {
  request: Accelerator
  /** There is room for it on the devices now; others may still be in front of it. */
  free: boolean
}

const whole = 1000
const GIB = 1024 ** 3
/** The part of a share's memory that must be free. */
const tolerance = 0.95

/** Reasons to wait that have to do with devices. One that is not told in phrases may be such a reason. */
const reasons = ['fewDevices', 'noFit', 'turn', 'turnAt', 'limit', 'neverDevices', 'neverOther']

/** Whether asking for less of the devices may help a session that waits. */
export function waitsForDevices({ wait }: Session): boolean {
  const said = wait?.said ?? []
  return said.length === 0 || said.some(({ say }) => say !== undefined && reasons.includes(say))
}

/** How many containers with a request fit on the devices now. */
function room(request: Accelerator, devices: readonly DeviceState[]): number {
  if (request.devices) return Math.floor(devices.filter((d) => d.free >= whole).length / request.devices)
  const { shares, memory } = request
  if (shares) {
    // Other programs may use memory of a device that no session was given.
    const fit = (d: DeviceState) =>
      Math.min(d.free / shares, d.memoryFree / (tolerance * (shares / whole) * (d.memory - (d.reserved ?? 0))))
    return devices.reduce((sum, d) => sum + Math.floor(fit(d)), 0)
  }
  if (memory) return devices.reduce((sum, d) => sum + Math.floor(d.memoryFree / memory), 0)
  return 0
}

/** Amounts below what is asked for: the most that is free, half of it, and the least. */
function amounts(asked: number, free: number, least: number): number[] {
  const down = (n: number) => Math.floor(n / least) * least
  const found = [down(Math.min(free, asked - least)), down(asked / 2), least]
  return [...new Set(found)].filter((n) => n > 0 && n < asked).sort((a, b) => b - a)
}

/** What a session that waits could ask for instead, the most first. */
export function smallerRequests(session: Session, all: readonly DeviceState[], quantum: number): Smaller[] {
  const devices = all.filter((d) => !d.lost && !d.unread && !d.over)
  const kernels = session.spec.cluster ?? 1
  const asked = session.spec.accelerator ?? {}
  const most = (of: (d: DeviceState) => number) => Math.max(0, ...devices.map(of))
  const share = (below: number): Accelerator[] =>
    amounts(
      below,
      most((d) => (d.free < whole ? d.free : 0)),
      quantum,
    ).map((shares) => ({ shares }))
  let requests: Accelerator[] = []
  if (asked.devices === 1) requests = share(whole)
  else if (asked.devices) {
    const free = devices.filter((d) => d.free >= whole).length
    requests = amounts(asked.devices, Math.floor(free / kernels), 1).map((n) => ({ devices: n }))
  } else if (asked.shares && asked.shares <= whole) requests = share(asked.shares)
  else if (asked.shares) requests = [{ devices: 1 }]
  else if (asked.memory)
    requests = amounts(
      asked.memory,
      most((d) => d.memoryFree),
      GIB,
    ).map((memory) => ({ memory }))
  else if (asked.profile && (asked.count ?? 1) > 1)
    requests = amounts(asked.count ?? 1, 0, 1).map((count) => ({ profile: asked.profile ?? '', count }))
  return requests.map((request) => ({ request, free: room(request, devices) >= kernels }))
}
