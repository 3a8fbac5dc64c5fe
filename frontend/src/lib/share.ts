// Units of devices as people read them. Shares are thousandths of a device,
// load is hundredths of a percent, power milliwatts, energy millijoules.

/** Writes thousandths of a device as a number of devices: "0.5", "2", "0.125". */
export function formatShare(thousandths: number): string {
  return (thousandths / 1000).toFixed(3).replace(/\.?0+$/, '')
}

/** Writes hundredths of a percent: "87 %", below ten with a digit: "4.2 %". */
export function formatLoad(permyriad: number): string {
  return formatPercent(permyriad / 100)
}

/** What was used within an allocation, and what was used above it: a share limits memory, not time on the device. */
export function splitUse(used: number, allocated: number): { within: number; above: number } {
  const within = Math.min(used, allocated)
  return { within, above: used - within }
}

/** Writes a percentage, below ten with a digit: "4.2 %". */
export function formatPercent(percent: number): string {
  const text = percent >= 9.95 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1).replace(/\.0$/, '')
  return `${text} %`
}

/** Writes milliwatts: "312 W". */
export function formatWatts(milliwatts: number): string {
  const watts = milliwatts / 1000
  return `${watts >= 10 ? watts.toFixed(0) : watts.toFixed(1)} W`
}

const mjPerWh = 3_600_000

/** Millijoules in a kilowatt hour. */
export const mjPerKwh = mjPerWh * 1000

/** Writes millijoules in watt hours, from 1000 of them on in kilowatt hours. */
export function formatEnergy(millijoules: number): string {
  const wh = millijoules / mjPerWh
  if (wh >= 1000) return `${digits(wh / 1000)} kWh`
  return `${digits(wh)} Wh`
}

/** Millijoules as kilowatt hours. */
export function toKwh(millijoules: number): number {
  return millijoules / mjPerWh / 1000
}

/** Reports whether more is known of the use of devices than for how long they were allocated. */
export function isUseKnown(use: { allocGpuMs: number; coveredMs: number; estimatedMs: number }): boolean {
  return use.allocGpuMs === 0 || use.coveredMs + use.estimatedMs > 0
}

/** Milliseconds as hours. */
export function toHours(ms: number): number {
  return ms / 3_600_000
}

/** Writes a number with two or three significant digits and no needless zeros: "12.4", "0.08", "0.004", "1,240". */
export function digits(value: number): string {
  if (value === 0) return '0'
  if (Math.abs(value) >= 999.5) return Math.round(value).toLocaleString('en-US')
  const size = Math.abs(value)
  const places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.0995 ? 2 : 3
  const text = value.toFixed(places)
  const short = text.includes('.') ? text.replace(/\.?0+$/, '') : text
  return Number(short) === 0 ? '<0.001' : short
}
