import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Launched } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// What is told of sessions beside their list: that one is about to be reclaimed, and how a launch goes.
const program = new DemoProgram('workstation')
const browser = new Browser()
const image = 'python:3.12'
const small = { cpu: 1, memory: 1024 ** 3 }

stage(program, browser, { afresh: true })

const runs = (name: string, more: Parameters<typeof program.launch>[0] = {}) =>
  program.running({ name, image, resources: small, ...more })
const dock = (page: Page) => page.getByRole('region', { name: 'Session notifications' })
const warning = (page: Page, name: string) => dock(page).getByRole('alert').filter({ hasText: name })

/** Has a session whose end is announced for a minute, once that is asked for. */
async function soonOver(name: string): Promise<{ id: string; announce: () => Promise<string> }> {
  const { id } = await runs(name, { idle: { lifetime: '2m' } })
  await program.cli('keep', name, '1h')
  return { id, announce: () => program.cli('keep', name, '0') }
}

describe('an end by idle checks', () => {
  it('is announced on every page, in the list and on the command line, and put off by a button', async () => {
    const kept = await soonOver('nearly-lost')
    const pages = ['/sessions', '/launcher', '/gpus', `/sessions/${kept.id}`, `/sessions/${kept.id}/terminal?window=1`]
    const open: Page[] = []
    for (const path of pages) open.push(await browser.page(program, path))
    await kept.announce()
    for (const page of open) {
      await warning(page, 'nearly-lost')
        .getByText(/^nearly-lost ends (in \S+|now)$/)
        .waitFor()
    }
    const [list, launcher] = open as [Page, Page]
    await row(list, 'nearly-lost')
      .getByText(/^Ends (in \S+|now)$/)
      .waitFor()
    expect(await program.cli('ps')).toMatch(/nearly-lost .* ends in \S+ unless kept: slipway keep nearly-lost 4h/)
    await picture(list, 'reclaim-list')
    await picture(launcher, 'reclaim-launcher')
    await warning(launcher, 'nearly-lost').getByRole('button', { name: 'Keep for 1 h' }).click()
    for (const page of open) await warning(page, 'nearly-lost').waitFor({ state: 'detached' })
    const until = Date.parse((await program.session(kept.id)).keepUntil ?? '')
    expect((until - Date.now()) / 60_000).toBeGreaterThan(58)
    expect(await program.cli('keep', 'nearly-lost', 'tomorrow')).toMatch(
      /^nearly-lost is kept until .* 09:00:0\d \(in /,
    )
  })

  it('is stopped and kept, and launched again from its drawer', async () => {
    const session = await soonOver('worth-keeping')
    const page = await browser.page(program)
    await session.announce()
    await warning(page, 'worth-keeping').getByRole('button', { name: 'Stop and keep' }).click()
    await eventually('it has ended', async () => (await program.session(session.id)).status === 'TERMINATED')
    expect((await program.session(session.id)).endImage?.state).toBe('done')
    await page.goto(`${program.url}/sessions/${session.id}`)
    const drawer = page.getByRole('dialog')
    await drawer.getByText('Stopped and kept').waitFor()
    await picture(page, 'parked')
    await drawer.getByRole('button', { name: 'Continue' }).click()
    await eventually('it runs again', () =>
      program.session('worth-keeping').then(
        ({ status }) => status === 'RUNNING',
        () => false, // its name belongs to no live session yet
      ),
    )
    expect(await program.cli('show', 'worth-keeping')).toMatch(/Mounts +folder worth-keeping → \/home\/work/)
  })
})

/** What of a page lies under the dock and could be seen or pressed there without it. */
const covered = (page: Page): Promise<string[]> =>
  dock(page).evaluate((element) => {
    const lies = element.getBoundingClientRect()
    const controls = [...document.querySelectorAll<HTMLElement>('input, textarea, button, a, [role], label')]
    ;(element as HTMLElement).style.visibility = 'hidden'
    const under = controls.filter((control) => {
      const box = control.getBoundingClientRect()
      const [left, right] = [Math.max(box.left, lies.left), Math.min(box.right, lies.right)]
      const [top, bottom] = [Math.max(box.top, lies.top), Math.min(box.bottom, lies.bottom)]
      if (element.contains(control) || control.contains(element) || right - left < 1 || bottom - top < 1) return false
      return control.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2))
    })
    ;(element as HTMLElement).style.visibility = ''
    return under.map((control) => control.outerHTML.slice(0, 120))
  })

/** How far two things are apart, in pixels. */
async function apart(one: ReturnType<Page['getByRole']>, other: ReturnType<Page['getByRole']>): Promise<number> {
  const [a, b] = [await one.boundingBox(), await other.boundingBox()]
  if (!a || !b) throw new Error('one of the two is not shown')
  const gap = (from: number, length: number, to: number, size: number) =>
    Math.max(0, to - (from + length), from - (to + size))
  return Math.hypot(gap(a.x, a.width, b.x, b.width), gap(a.y, a.height, b.y, b.height))
}

describe('the dock of notifications', () => {
  const launchFour = async (name: string) => {
    const launched = await program.call<Launched[]>('POST', '/launches', {
      spec: { name, image, resources: small },
      count: 4,
    })
    await Promise.all(launched.map(({ session }) => program.status(session?.id ?? '', 'RUNNING')))
    return launched.map(({ session }) => session?.id ?? '')
  }

  it('has one card for each launch, also of several or of a cluster, collapsed until it is opened', async () => {
    const page = await browser.page(program)
    await page.getByText('Connected').waitFor()
    await Promise.all([launchFour('swarm'), runs('trio', { cluster: 3 })])
    const chip = (name: string) => dock(page).getByRole('button', { name: new RegExp(`^${name}`) })
    await chip('swarm').getByText('4 of 4 running').waitFor()
    await chip('trio').getByText('3 of 3 running').waitFor()
    expect(
      await dock(page)
        .getByRole('button', { name: /^Dismiss the notification of (swarm|trio)/ })
        .count(),
    ).toBe(2)
    expect(
      await dock(page)
        .getByRole('button', { name: /^Terminate|^Apps/ })
        .count(),
    ).toBe(0)
    await chip('swarm').click()
    const panel = dock(page).getByRole('region', { name: 'swarm' })
    expect(await panel.getByRole('listitem').count()).toBe(4)
    await picture(page, 'dock-open')
    const terminate = panel.getByRole('button', { name: 'Terminate all 4' })
    for (const closes of ['Dismiss the notification of swarm', 'Collapse swarm'])
      expect(await apart(terminate, dock(page).getByRole('button', { name: closes }))).toBeGreaterThan(48)
    await terminate.click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await dock(page).getByRole('button', { name: 'Dismiss the notification of swarm' }).click()
    await chip('swarm').waitFor({ state: 'detached' })
  })

  it('never lies over what is on a page or in a drawer', async () => {
    const page = await browser.page(program)
    await page.getByText('Connected').waitFor()
    const [first = ''] = await launchFour('flock')
    const paths = ['/sessions', '/launcher', '/launcher?step=environment', '/launcher?step=confirm', '/images']
    paths.push('/folders', '/settings', `/sessions/${first}`, `/sessions/${first}?view=logs`)
    await dock(page)
      .getByRole('button', { name: /^flock/ })
      .click()
    for (const size of [
      { width: 1280, height: 800 },
      { width: 760, height: 600 },
    ]) {
      await page.setViewportSize(size)
      for (const path of paths) {
        // The page goes there by itself: one that loads again has nothing to tell.
        await page.evaluate((to) => {
          history.pushState({ idx: history.length }, '', to)
          dispatchEvent(new PopStateEvent('popstate', { state: history.state as unknown }))
        }, path)
        await page.locator(`#content[data-page="${path.split('?')[0] ?? ''}"]`).waitFor()
        await dock(page).getByRole('region', { name: 'flock' }).waitFor()
        await page.locator('.ant-skeleton:visible').first().waitFor({ state: 'detached' })
        expect({ path, size, covered: await covered(page) }).toEqual({ path, size, covered: [] })
      }
      await picture(page, `dock-${size.width}`)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
  })
})
