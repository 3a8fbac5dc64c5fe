import type { Accelerator, DeviceBoard, DeviceState } from '../../api/types.gen'
import { formatBytes } from '../../lib/bytes'
import { type Amount, amountFromBytes, amountToBytes, GIB, parseAmount, writeAmount } from './amount'

export const ACCELERATOR_MODES = ['none', 'shares', 'devices', 'mig', 'memory'] as const
export type AcceleratorMode = (typeof ACCELERATOR_MODES)[number]

/** What is asked of devices, as it is entered. Each mode keeps its own entries while another is chosen. */
export interface AcceleratorDraft {
  mode: AcceleratorMode
  /** Devices, in steps of the machine's quantum: 0.5. */
  shares: number | null
  devices: number | null
  profile: string
  instances: number | null
  memory: Amount
}

export const NO_ACCELERATOR: AcceleratorDraft = {
  mode: 'none',
  shares: 0.5,
  devices: 1,
  profile: '',
  instances: 1,
  memory: { value: 8, unit: 'g' },
}

/**
 * The text of a spec: "0.5", "2", "mig:1g.10gb:2", "vram:12g". What is not entered yet is left out; "" asks for none.
 */
export function acceleratorText(a: AcceleratorDraft): string {
  switch (a.mode) {
    case 'none':
      return ''
    case 'shares':
      // A whole number would mean whole devices.
      return a.shares === null
        ? ''
        : Number.isInteger(a.shares)
          ? `${a.shares}.0`
          : String(Math.round(a.shares * 1e6) / 1e6)
    case 'devices':
      return a.devices === null ? '' : String(a.devices)
    case 'mig':
      return a.profile === '' ? '' : `mig:${a.profile}${(a.instances ?? 1) > 1 ? `:${a.instances}` : ''}`
    case 'memory': {
      const bytes = amountToBytes(a.memory)
      return bytes === null || bytes <= 0
        ? ''
        : bytes % GIB === 0
          ? `vram:${bytes / GIB}g`
          : `vram:${Math.round(bytes / 1024 ** 2)}m`
    }
  }
}

/** The request of a spec; what is not entered yet asks for none. */
export function requestOf(a: AcceleratorDraft): Accelerator | undefined {
  switch (a.mode) {
    case 'none':
      return undefined
    case 'shares': {
      const shares = Math.round((a.shares ?? 0) * 1000)
      return shares === 0 ? undefined : shares % 1000 === 0 ? { devices: shares / 1000 } : { shares }
    }
    case 'devices':
      return a.devices && Number.isInteger(a.devices) ? { devices: a.devices } : undefined
    case 'mig':
      return a.profile === '' ? undefined : { profile: a.profile, count: Math.max(1, Math.floor(a.instances ?? 1)) }
    case 'memory': {
      const bytes = amountToBytes(a.memory) ?? 0
      return bytes > 0 ? { memory: Math.round(bytes / 1024 ** 2) * 1024 ** 2 } : undefined
    }
  }
}

/** Reads the text of a spec; what is none of its forms asks for nothing. */
export function parseAccelerator(text: string | undefined): AcceleratorDraft {
  const value = (text ?? '').trim()
  const mig = /^mig:([^:]+)(?::(\d+))?$/.exec(value)
  if (mig?.[1]) return { ...NO_ACCELERATOR, mode: 'mig', profile: mig[1], instances: Number(mig[2] ?? 1) }
  const vram = /^vram:(\d+(?:\.\d+)?)\s*([kmgt])(?:i?b)?$/i.exec(value)
  if (vram) {
    const scale = { k: 1024, m: 1024 ** 2, g: GIB, t: 1024 * GIB }[(vram[2] ?? 'g').toLowerCase()] ?? GIB
    return { ...NO_ACCELERATOR, mode: 'memory', memory: amountFromBytes(Number(vram[1]) * scale) }
  }
  if (/^[1-9]\d*$/.test(value)) return { ...NO_ACCELERATOR, mode: 'devices', devices: Number(value) }
  if (/^\d+\.\d+$/.test(value) && Number(value) > 0) return { ...NO_ACCELERATOR, mode: 'shares', shares: Number(value) }
  return NO_ACCELERATOR
}

/** As the address keeps it: also what is not entered yet. */
export function encodeAccelerator(a: AcceleratorDraft): string {
  if (a.mode === 'none') return ''
  if (a.mode === 'memory') return `memory ${writeAmount(a.memory)}`
  return `${a.mode} ${{ shares: a.shares, devices: a.devices, mig: `${a.profile}:${a.instances ?? ''}` }[a.mode] ?? ''}`
}

export function decodeAccelerator(text: string): AcceleratorDraft {
  const [mode, rest = ''] = text.split(' ')
  const number = rest !== '' && Number.isFinite(Number(rest)) ? Number(rest) : null
  if (mode === 'shares') return { ...NO_ACCELERATOR, mode, shares: number }
  if (mode === 'devices') return { ...NO_ACCELERATOR, mode, devices: number }
  if (mode === 'memory') return { ...NO_ACCELERATOR, mode, memory: parseAmount(rest) ?? NO_ACCELERATOR.memory }
  if (mode === 'mig') {
    const [profile = '', count = ''] = rest.split(':')
    return { ...NO_ACCELERATOR, mode, profile, instances: /^\d+$/.test(count) ? Number(count) : null }
  }
  return NO_ACCELERATOR
}

/** What the devices of the machines that a launch may choose offer. */
export interface Offer {
  boards: DeviceBoard[]
  devices: DeviceState[]
  /** The smallest step of a share, in devices. */
  quantum: number
  /** The most devices of one machine: a session is on one. */
  most: number
  /** The largest share that is free on one device, and on all of one machine, in devices. */
  freeOnOne: number
  freeShares: number
  /** The most devices of one machine that are wholly free. */
  freeWhole: number
  profiles: { profile: string; count: number; memory: number }[]
  /** The most memory of one device, and the most that is free on one. */
  memory: number
  freeMemory: number
  mps: boolean
}

/** Sums up what the chosen machine, or for Auto each that is reached, offers. Boards without devices offer nothing. */
export function offerOf(boards: readonly DeviceBoard[], agent: string): Offer {
  const chosen = boards.filter((b) => b.online && b.devices.length > 0 && (agent === '' || b.agent === agent))
  const devices = chosen.flatMap((b) => b.devices)
  // Instances are asked for by profile: a device that is cut up offers no shares.
  const shareableOf = (all: readonly DeviceState[]) => all.filter((d) => d.instances.length === 0)
  const shareable = shareableOf(devices)
  const profiles = new Map<string, { profile: string; count: number; memory: number }>()
  for (const { profile, memory } of devices.flatMap((d) => d.instances)) {
    const known = profiles.get(profile) ?? { profile, count: 0, memory }
    profiles.set(profile, { ...known, count: known.count + 1 })
  }
  const most = (values: number[]) => Math.max(0, ...values)
  return {
    boards: chosen,
    devices,
    quantum: Math.min(...chosen.map((b) => b.quantum), 1000) / 1000 || 0.1,
    freeOnOne: most(shareable.map((d) => d.free)) / 1000,
    most: most(chosen.map((b) => b.devices.length)),
    freeShares: most(chosen.map((b) => shareableOf(b.devices).reduce((sum, d) => sum + d.free, 0))) / 1000,
    freeWhole: most(chosen.map((b) => shareableOf(b.devices).filter((d) => d.free === 1000).length)),
    profiles: [...profiles.values()].toSorted((a, b) => a.memory - b.memory || a.profile.localeCompare(b.profile)),
    memory: most(shareable.map((d) => d.memory - d.reserved)),
    freeMemory: most(shareable.map((d) => d.memoryFree)),
    mps: devices.some((d) => d.capabilities.some((c) => c.id === 'mps' && c.state === 'yes')),
  }
}

/** Whether a machine ever has what is asked, whoever uses it now. */
function hasEver(a: AcceleratorDraft, { boards, profiles, memory }: Offer): boolean {
  const whole = Math.max(0, ...boards.map((b) => b.devices.filter((d) => d.instances.length === 0).length))
  switch (a.mode) {
    case 'none':
      return true
    case 'shares':
      return (a.shares ?? 0) <= whole
    case 'devices':
      return (a.devices ?? 0) <= whole
    case 'mig':
      return profiles.some(({ profile, count }) => profile === a.profile && count >= (a.instances ?? 1))
    case 'memory':
      return (amountToBytes(a.memory) ?? 0) <= memory
  }
}

/** The other machines that have what is asked of the chosen one, which never has it. */
export function elsewhere(a: AcceleratorDraft, boards: readonly DeviceBoard[], agent: string): string[] {
  if (agent === '' || hasEver(a, offerOf(boards, agent))) return []
  const names = [...new Set(boards.map((b) => b.agent))]
  return names.filter((name) => name !== agent && hasEver(a, offerOf(boards, name)))
}

/** What several kernels are granted together, in words: "1.5", "4", "2 × 1g.10gb", "24 GiB VRAM". */
export function totalOf(a: AcceleratorDraft, times: number): string {
  switch (a.mode) {
    case 'none':
      return '–'
    case 'shares':
      return a.shares === null ? '–' : String(Math.round(a.shares * times * 1000) / 1000)
    case 'devices':
      return a.devices === null ? '–' : String(a.devices * times)
    case 'mig':
      return a.profile ? `${(a.instances ?? 1) * times} × ${a.profile}` : '–'
    case 'memory': {
      const bytes = amountToBytes(a.memory)
      return bytes === null ? '–' : `${formatBytes(bytes * times)} VRAM`
    }
  }
}
