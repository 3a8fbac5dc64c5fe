/** Writes numbers of CPUs the way the kernel does: "0–3, 6". */
export function cpuRanges(cpus: readonly number[]): string {
  const parts: string[] = []
  const sorted = [...cpus].sort((a, b) => a - b)
  for (let i = 0; i < sorted.length; i++) {
    const first = sorted[i]
    while (sorted[i + 1] === (sorted[i] ?? 0) + 1) i++
    parts.push(first === sorted[i] ? String(first) : `${first}–${sorted[i]}`)
  }
  return parts.join(', ')
}
