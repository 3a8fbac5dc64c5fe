import type { DeviceBoard, DeviceHolder, DeviceState } from '@/api/types.gen'

export type PartKind = 'session' | 'unclaimed' | 'neighbour' | 'foreign' | 'other' | 'reserved'

/** One piece of a device's memory, in bytes. */
export interface MemoryPart {
  kind: PartKind
  holder?: DeviceHolder
  bytes: number
}

/** Whether a holder is a session of another Slipway: neither ours nor a process. */
export const isNeighbour = (holder: DeviceHolder): boolean => !holder.session && holder.share > 0

/** A remainder below this part of the device is rounding, not somebody. */
const noise = 0.005

/**
 * Splits a device's memory by who holds it: of each session what it really
 * holds and what it was promised besides, of each session of another Slipway
 * what it was promised, since only its own agent knows what it holds of that,
 * of each foreign process what it holds, what is used by nobody known, and what the driver keeps. The rest is
 * free. A holder whose use is not told stands with its promise alone.
 */
export function memoryParts(device: DeviceState): MemoryPart[] {
  const sessions = device.holders.filter((h) => h.session)
  const neighbours = device.holders.filter(isNeighbour)
  const foreign = device.holders.filter((h) => !h.session && !isNeighbour(h))
  const parts: MemoryPart[] = []
  for (const holder of sessions) {
    const held = holder.memory ?? 0
    parts.push(
      { kind: 'session', holder, bytes: held },
      { kind: 'unclaimed', holder, bytes: Math.max(0, holder.promised - held) },
    )
  }
  for (const holder of neighbours) parts.push({ kind: 'neighbour', holder, bytes: holder.promised })
  for (const holder of foreign) parts.push({ kind: 'foreign', holder, bytes: holder.memory ?? 0 })
  const known = device.holders.reduce((sum, h) => sum + (isNeighbour(h) ? h.promised : (h.memory ?? 0)), 0)
  const rest = (device.memoryUsed ?? 0) - known
  if (rest > device.memory * noise) parts.push({ kind: 'other', bytes: rest })
  parts.push({ kind: 'reserved', bytes: device.reserved })
  return parts.filter((part) => part.bytes > 0)
}

/** A number for each session that holds anything, the same on every device, to colour it by. */
export function sessionNumbers(boards: readonly DeviceBoard[]): Map<string, number> {
  const numbers = new Map<string, number>()
  for (const board of boards) {
    for (const device of board.devices) {
      for (const { session } of device.holders) if (session && !numbers.has(session)) numbers.set(session, numbers.size)
    }
  }
  return numbers
}

/** Sessions first, those with the largest share before; then foreign processes by what they hold. */
export function sortHolders(holders: readonly DeviceHolder[]): DeviceHolder[] {
  return holders.toSorted(
    (a, b) =>
      Number(!a.session) - Number(!b.session) ||
      b.share - a.share ||
      (b.memory ?? 0) - (a.memory ?? 0) ||
      a.name.localeCompare(b.name),
  )
}

/** The profiles of a device's instances, the smallest first, and how many there are of each. */
export function profilesOf(device: DeviceState): { profile: string; count: number; memory: number }[] {
  const found = new Map<string, { profile: string; count: number; memory: number }>()
  for (const { profile, memory } of device.instances)
    found.set(profile, { profile, memory, count: (found.get(profile)?.count ?? 0) + 1 })
  return [...found.values()].toSorted((a, b) => a.memory - b.memory || a.profile.localeCompare(b.profile))
}
