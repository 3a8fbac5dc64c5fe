import type { Locator } from 'playwright-core'

/** Prints a figure for build/bench, which makes a table of them. */
export const tell = (value: number, unit: string) =>
  process.stdout.write(`${String(Math.round(value * 100) / 100)} ${unit}\n`)

export function quantile(values: number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN
}

/** Turns the wheel over rows until the last of them is in sight, and prints how long the frames took. */
export async function scrollThrough(rows: Locator, last: Locator): Promise<void> {
  const page = rows.page()
  const box = await rows.boundingBox()
  if (!box) throw new Error('the rows are not there')
  await page.mouse.move(box.x + 100, box.y + 100)
  await page.evaluate(() => {
    const frames: number[] = []
    let before = performance.now()
    const tick = (now: number) => {
      frames.push(now - before)
      before = now
      requestAnimationFrame(tick)
    }
    requestAnimationFrame(tick)
    Object.assign(window, { frames })
  })
  for (let turns = 0; !(await last.isVisible()); turns++) {
    if (turns > 1000) throw new Error('the last row does not come')
    await page.mouse.wheel(0, 1600)
  }
  const frames = (await page.evaluate<number[]>('frames')).slice(2)
  tell(quantile(frames, 0.5), 'frame-ms')
  tell(quantile(frames, 0.95), 'late-frame-ms')
  tell(Math.max(...frames), 'longest-frame-ms')
}
