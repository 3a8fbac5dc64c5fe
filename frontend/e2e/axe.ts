import axe, { type RunOnly } from 'axe-core'
import type { Page } from 'playwright-core'

// What is judged: WCAG 2.2 A and AA, and what axe holds to be good practice.
const all: RunOnly = {
  type: 'tag',
  values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
}

/** What of it depends on colours. */
export const colours: RunOnly = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] }

/** Every fault that axe finds on the page as it is now, by these rules: the rule, where, and why. */
export async function faults(page: Page, rules = all): Promise<string[]> {
  // What fades in is measured when it is there.
  await page.evaluate(() =>
    Promise.all(
      document
        .getAnimations()
        .filter((a) => a.effect?.getComputedTiming().endTime !== Infinity)
        .map((a) => a.finished.catch(() => undefined)),
    ),
  )
  await page.evaluate(axe.source)
  return page.evaluate(async (runOnly) => {
    const { violations } = await (window as unknown as { axe: typeof axe }).axe.run(document, {
      runOnly,
      resultTypes: ['violations'],
    })
    return violations.flatMap((v) =>
      v.nodes.map(
        (n) => `${v.id}: ${n.html.slice(0, 240)} – ${(n.failureSummary ?? v.help).replace(/\s+/g, ' ').slice(0, 300)}`,
      ),
    )
  }, rules)
}
