import { splitBytes } from '@/lib/bytes'

/** An amount of bytes with its unit set back, so that columns of numbers read as numbers. */
export function Bytes({ value }: { value: number }) {
  const { value: number, unit } = splitBytes(value)
  return (
    <span className="num" style={{ whiteSpace: 'nowrap' }}>
      {number} <span style={{ color: 'var(--ant-color-text-tertiary)' }}>{unit}</span>
    </span>
  )
}
