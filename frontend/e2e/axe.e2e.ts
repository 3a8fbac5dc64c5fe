import type { Page } from 'playwright-core'
import { beforeAll, describe, it } from 'vitest'
import type { Session, Settings } from '@/api/types.gen'
import { appsOf, openedBy, tile } from './appsPage'
import { colours, faults } from './axe'
import { Browser } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram } from './program'

// Every view and the main dialogs, light and dark, as axe-core judges them.
const program = new DemoProgram('workstation')
const browser = new Browser()
let running: Session
let failed: Session

stage(program, browser, {
  prepare: async () => {
    await program.endAll('notebook') // what a story launched tells of itself when it likes
    running = await program.running({ name: 'alive', image: 'python:3.12' })
    failed = await program.launch({ name: 'broken', image: 'python:3.12', type: 'batch', command: 'exit 3' })
    await program.status(failed.id, 'TERMINATED')
    await program.call('POST', '/folders', { name: 'datasets' })
  },
})

/** The page is connected, so it listens to keys. */
const connected = (page: Page) => page.getByText('Connected').waitFor()
const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { name }).first().waitFor()
const dialog = (page: Page) => page.getByRole('dialog').last().waitFor()

interface View {
  name: string
  path: () => string
  /** Waits until the view is whole; opens what the view is about. */
  ready: (page: Page) => Promise<unknown>
}

const views: View[] = [
  { name: 'sessions', path: () => '/sessions', ready: (page) => row(page, 'alive').waitFor() },
  { name: 'finished sessions', path: () => '/sessions?state=finished', ready: (page) => row(page, 'broken').waitFor() },
  { name: 'session', path: () => `/sessions/${running.id}`, ready: dialog },
  { name: 'logs', path: () => `/sessions/${running.id}?view=logs`, ready: dialog },
  { name: 'history of a session', path: () => `/sessions/${failed.id}?view=history`, ready: dialog },
  { name: 'apps', path: () => `/sessions?apps=${running.id}`, ready: dialog },
  {
    name: 'terminate',
    path: () => '/sessions',
    ready: async (page) => {
      await row(page, 'alive').getByRole('button', { name: 'Terminate' }).click()
      await dialog(page)
    },
  },
  {
    name: 'terminal',
    path: () => `/sessions/${running.id}/terminal`,
    ready: (page) => page.locator('.xterm').waitFor(),
  },
  ...['type', 'environment', 'storage', 'network', 'confirm'].map((step) => ({
    name: `launcher, ${step}`,
    path: () => `/launcher?step=${step}`,
    ready: (page: Page) => heading(page, 'Launch a session'),
  })),
  {
    name: 'recent launches',
    path: () => '/launcher',
    ready: async (page) => {
      await page.getByRole('button', { name: 'Recent history' }).click()
      await dialog(page)
    },
  },
  { name: 'folders', path: () => '/folders', ready: (page) => page.getByText('datasets').first().waitFor() },
  {
    name: 'new folder',
    path: () => '/folders',
    ready: async (page) => {
      await page.getByRole('button', { name: 'New folder' }).first().click()
      await dialog(page)
    },
  },
  { name: 'gpus', path: () => '/gpus', ready: (page) => heading(page, 'GPUs') },
  { name: 'images', path: () => '/images', ready: (page) => heading(page, 'Images') },
  { name: 'usage', path: () => '/usage', ready: (page) => heading(page, 'Usage') },
  { name: 'usage of services', path: () => '/usage?view=services', ready: (page) => heading(page, 'Usage') },
  { name: 'agents', path: () => '/agents', ready: (page) => heading(page, 'Machines') },
  { name: 'agent', path: () => '/agents/workstation', ready: dialog },
  {
    name: 'add an agent',
    path: () => '/agents',
    ready: async (page) => {
      await page.getByRole('button', { name: 'Add a machine' }).first().click()
      await dialog(page)
    },
  },
  { name: 'settings', path: () => '/settings', ready: (page) => heading(page, 'Settings') },
  { name: 'log', path: () => '/log', ready: (page) => page.locator('pre').waitFor() },
  {
    name: 'notifications',
    path: () => '/sessions',
    ready: async (page) => {
      await page.getByRole('button', { name: /Notifications/ }).click()
      await dialog(page)
    },
  },
  {
    name: 'palette',
    path: () => '/gpus',
    ready: async (page) => {
      await connected(page)
      await page.keyboard.press('Control+k')
      await page.getByRole('option', { name: /alive: details/ }).waitFor()
    },
  },
  {
    name: 'keys',
    path: () => '/gpus',
    ready: async (page) => {
      await connected(page)
      await page.keyboard.press('?')
      await dialog(page)
    },
  },
  { name: 'nothing there', path: () => '/nowhere', ready: (page) => heading(page, 'Page not found') },
]

/** Every fault of a page in both themes. They share what they show, so in the dark one only colours are judged. */
async function themes(page: Page): Promise<void> {
  const found = await faults(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.locator('html[data-theme="dark"]').waitFor({ state: 'attached' })
  found.push(...(await faults(page, colours)).map((fault) => `dark: ${fault}`))
  if (found.length > 0) throw new Error(found.join('\n'))
}

describe('in both themes', () => {
  beforeAll(async () => {
    const settings = await program.call<Settings>('GET', '/settings')
    await program.call('PUT', '/settings', { ...settings, theme: 'system' })
  })
  it.each(views)('axe finds no fault: $name', async ({ path, ready }) => {
    const page = await browser.page(program, path())
    await page.locator('html[data-theme="light"]').waitFor({ state: 'attached' })
    await ready(page)
    await page.locator('.ant-skeleton:visible, .ant-spin-spinning:visible').first().waitFor({ state: 'detached' })
    // The tip of what was pressed comes a moment later, and goes with the pointer.
    await page.mouse.move(100, 600)
    await page.locator('.ant-tooltip:visible').first().waitFor({ state: 'detached' })
    await themes(page)
  })

  it('axe finds no fault: notebook of a simulated session', async () => {
    const story = (await program.sessions()).find((s) => s.name === 'notebook')
    if (!story) throw new Error('the story has no notebook')
    const apps = await appsOf(browser, program, story)
    const page = await openedBy(browser, () => tile(apps, 'jupyterlab').getByRole('button').first().click())
    await page.getByRole('button', { name: 'churn/explore.ipynb' }).click()
    await page.getByRole('status').getByText('Ready').waitFor()
    await page.getByRole('button', { name: 'Run all' }).click()
    await page.getByText('20 customers written').waitFor()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const found = await faults(page)
      if (found.length > 0) throw new Error(`${colorScheme}: ${found.join('\n')}`)
    }
  })
})
