import { describe, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { DemoProgram } from './program'

const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser)

const sections = (page: Page) => page.getByRole('navigation', { name: 'Sections' })
const answer = async (page: Page) => (await page.request.get(`${program.url}/api/v1/sessions`)).status()

describe('login', () => {
  it('is by the printed address, once, and without it nothing is told', async () => {
    const page = await browser.context.newPage()
    await page.goto(program.url)
    expect(await answer(page)).toBe(401)
    await picture(page, 'not-logged-in')
    await page.goto(program.printedLogin)
    await page.waitForURL((address) => address.pathname !== '/login')
    await sections(page).waitFor()
    await page.getByText('Connected').waitFor()
    expect(await answer(page)).toBe(200)

    const other = await Browser.open()
    try {
      const second = await other.context.newPage()
      await second.goto(program.printedLogin)
      expect(await answer(second)).toBe(401)
      await picture(second, 'login-used-up')
    } finally {
      await other.close()
    }
  })
})
