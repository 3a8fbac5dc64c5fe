import { describe, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import type { Settings } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { launch, row, step } from './launcherPage'
import { DemoProgram, eventually } from './program'

// What one click starts, on the simulated machines: the notebook there really computes.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

const offers = (page: Page) => page.getByRole('region', { name: 'Quick start' })
const offer = (page: Page, kind: 'new' | 'last' | 'pinned') => offers(page).locator(`[data-offer="${kind}"]`)

/** Clicks an offer, and returns the tab that shows its app without another click. */
async function pressed(page: Page, kind: 'new' | 'last' | 'pinned'): Promise<Page> {
  const [tab] = await Promise.all([
    browser.context.waitForEvent('page'),
    offer(page, kind).getByRole('button').first().click(),
  ])
  await tab.waitForURL(/^http:\/\/jupyterlab-\w+\.localhost:/)
  return tab
}

const live = async () => (await program.sessions()).filter((session) => session.status === 'RUNNING')

describe('quick start', () => {
  it('runs a cell after one click on an empty page', async () => {
    const page = await browser.page(program)
    await page.getByText('No running sessions').waitFor()
    await offer(page, 'new').getByText('JupyterLab here').waitFor()
    await offer(page, 'new').getByText('Starts at once').waitFor()
    await picture(page, 'start-sessions')
    const tab = await pressed(page, 'new')
    await tab.getByRole('status').getByText('Ready').waitFor()
    expect([new URL(tab.url()).hash, tab.url().includes('ticket')]).toEqual(['#Untitled.ipynb', false])
    await tab.locator('.cm-content').first().click()
    await tab.keyboard.insertText('print(6 * 7)')
    await tab.keyboard.press('Shift+Enter')
    await tab.getByText('42', { exact: true }).waitFor()
    const [session] = await live()
    expect(session?.agent).toBe((await program.agents()).find((agent) => agent.local)?.name)
    await row(page, session?.name ?? '')
      .getByText('Running')
      .waitFor()
  })

  it('is above the first step of an empty launcher, whose first choice has Jupyter', async () => {
    const page = await browser.page(program, '/launcher')
    await offer(page, 'new').getByText('JupyterLab here').waitFor()
    await picture(page, 'start-launcher')
    await page.getByLabel('Name', { exact: true }).fill('typed-name')
    await offers(page).waitFor() // nothing jumps
    await step(page, 'environment').click()
    await page.getByText('quay.io/jupyter/minimal-notebook:latest').first().waitFor()
    await step(page, 'type').click()
    await offers(page).waitFor({ state: 'detached' })
  })

  it('opens the last notebook if it runs, and launches it again if not', async () => {
    const page = await browser.page(program, '/launcher?step=confirm&draft=')
    await launch(page)
    await eventually('it runs', async () => (await live()).length === 1)
    const [before] = await live()
    await page.goto(`${program.url}/launcher`)
    await offer(page, 'last')
      .getByText(`Running on ${before?.agent ?? ''}`)
      .waitFor()
    const tab = await pressed(page, 'last')
    await tab.getByRole('heading').first().waitFor()
    expect((await live()).map(({ id }) => id)).toEqual([before?.id])
    await program.endAll()
    await offer(page, 'last').getByText('Last notebook').waitFor()
    await pressed(page, 'last')
    const [again] = await live()
    expect(again?.id).not.toBe(before?.id)
  })

  it('offers what is pinned, and its review', async () => {
    const page = await browser.page(program)
    await offer(page, 'pinned').getByText('Churn, nightly').waitFor()
    await offers(page).getByRole('button', { name: 'Review Churn, nightly in the launcher' }).click()
    await page.getByRole('heading', { name: 'Command line' }).waitFor()
    expect(await live()).toEqual([])
    await page.goBack()
    await offer(page, 'pinned').getByRole('button').first().click()
    await row(page, 'train-churn').waitFor()
  })

  it('opens nothing by itself where the setting is off', async () => {
    const settings = await program.call<Settings>('GET', '/settings')
    await program.call('PUT', '/settings', { ...settings, openApps: false })
    try {
      const page = await browser.page(program)
      await offer(page, 'new').getByText('Starts at once').waitFor()
      const before = browser.context.pages().length
      await offer(page, 'new').getByRole('button').click()
      await eventually('it runs', async () => (await live()).length === 1)
      expect(browser.context.pages().length).toBe(before)
    } finally {
      await program.call('PUT', '/settings', { ...settings, openApps: true })
    }
  })

  it('goes on after a reload of the page, with a link where no tab may be opened', async () => {
    const page = await browser.page(program)
    await offer(page, 'new').getByText('Starts at once').waitFor()
    const apps = '**/api/v1/sessions/*/apps'
    let held = true // no answer before the page is reloaded
    let asked = false
    await page.route(apps, (route) => {
      asked = true
      return held ? undefined : route.continue()
    })
    const [tab] = await Promise.all([
      browser.context.waitForEvent('page'),
      offer(page, 'new').getByRole('button').click(),
    ])
    await eventually('it runs, and the page knows', () => Promise.resolve(asked))
    page.once('framenavigated', () => (held = false)) // what the page before it asks is never answered
    await page.reload()
    await eventually('the empty tab is gone', () => Promise.resolve(tab.isClosed()))
    const card = page.locator('[data-opening="jupyterlab"]')
    await card.getByText('It is ready.').waitFor()
    await picture(page, 'start-reloaded')
    const [again] = await Promise.all([
      browser.context.waitForEvent('page'),
      card.getByRole('link', { name: 'Open it here' }).click(),
    ])
    await again.waitForURL(/#Untitled\.ipynb$/)
  })
})
