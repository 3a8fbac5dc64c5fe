import { splitBytes } from '@/lib/bytes'
import { formatShare } from '@/lib/share'

const oneDigit = (n: number) => n.toFixed(1).replace(/\.0$/, '')

export type Countable = 'cpu' | 'memory' | 'gpu' | 'vram'

/** Writes an amount of a resource with its unit. */
export function write(resource: Countable, value: number): { value: string; unit: string; text: string } {
  if (resource === 'memory' || resource === 'vram') {
    const { value: number, unit } = splitBytes(Math.max(0, value))
    return { value: number, unit, text: `${number} ${unit}` }
  }
  const number =
    resource === 'gpu' ? formatShare(Math.round(Math.max(0, value) / 10) * 10) : oneDigit(Math.max(0, value))
  return { value: number, unit: '', text: number }
}
