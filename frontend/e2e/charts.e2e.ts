import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Usage } from '@/api/types.gen'
import { formatBytes } from '../src/lib/bytes'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { DemoProgram, eventually } from './program'

// The charts of a session are the agent's samples: a page that is opened anew shows those from before.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

const samples = (id: string) => program.call<Usage[]>('GET', `/sessions/${id}/usage`)

/** What the memory chart reads at the beginning of its line. */
async function oldest(page: Page): Promise<string> {
  const chart = page.locator('figure', { hasText: 'Memory' })
  await chart.locator('.u-over').hover({ position: { x: 2, y: 20 } })
  return (await chart.locator('figcaption').innerText()).replace(/\s+/g, ' ')
}

describe('the charts of a session', () => {
  it('have what was measured before the page was opened anew', async () => {
    const { id } = await program.running({ image: 'python:3.12', accelerator: { shares: 500 } })
    const page = await browser.page(program, `/sessions/${id}`)
    await page.locator('figure', { hasText: 'Memory' }).locator('.u-over').waitFor()
    const [first, ...later] = await eventually('memory was measured to change', async () => {
      const all = await samples(id)
      return (
        new Set(all.map((u) => formatBytes(u.memory))).size > 1 &&
        formatBytes(all[0]?.memory ?? 0) !== formatBytes(all.at(-1)?.memory ?? 0) &&
        all
      )
    })
    const begins = () =>
      eventually('the line begins with what was measured first', async () =>
        (await oldest(page)).includes(formatBytes(first?.memory ?? 0)),
      )
    await begins()

    await page.reload()
    await page.locator('figure', { hasText: 'Memory' }).locator('.u-over').waitFor()
    await begins()
    const now = await samples(id)
    expect(now[0]?.at).toBe(first?.at)
    expect(now.length).toBeGreaterThanOrEqual(later.length + 1)
    for (const chart of ['CPU', 'Memory', 'GPU load', 'VRAM', 'Network', 'Disk'])
      await page.getByRole('img', { name: chart, exact: true }).waitFor()
    await page.getByText('1 hour', { exact: true }).click()
    await eventually('the last hour is shown', () => page.getByRole('radio', { name: '1 hour' }).isChecked())
    await begins()
    await picture(page, 'charts-reloaded')
  })
})
