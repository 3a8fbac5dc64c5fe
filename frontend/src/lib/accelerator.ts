// What a session asks of devices, as people write it: 0.5, 2, mig:1g.10gb:2, vram:12g.

/** The part of a request that tells what it is. An api Accelerator fits. */
export interface AcceleratorSubject {
  shares?: number
  devices?: number
  profile?: string
  count?: number
  memory?: number
}

/** A request as people write it; none is empty. */
export function requestText(a: AcceleratorSubject | undefined): string {
  if (a?.devices) return String(a.devices)
  if (a?.profile) return `mig:${a.profile}${(a.count ?? 1) > 1 ? `:${a.count}` : ''}`
  if (a?.memory) return a.memory % 1024 ** 3 === 0 ? `vram:${a.memory / 1024 ** 3}g` : `vram:${a.memory / 1024 ** 2}m`
  return a?.shares ? String(a.shares / 1000) : ''
}

/** Devices asked for in thousandths, for sorting; requests by memory come before shares. */
export function acceleratorRank(a: AcceleratorSubject | undefined): number {
  if (!a) return 0
  if (a.devices) return a.devices * 1000
  if (a.shares) return a.shares
  return a.profile ? (a.count ?? 1) : 0.5
}
