import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { row } from './launcherPage'
import { DemoProgram, eventually } from './program'

// Two simulated machines, on one of which other people have sessions, too.
const program = new DemoProgram('lab')
// Only rows in sight are drawn.
const browser = new Browser({ width: 1280, height: 1100 })

stage(program, browser)

describe('selecting all', () => {
  it('selects only one’s own, never more than is seen, and all of it is named before it ends', async () => {
    const page = await browser.page(program)
    const box = (name: string) => row(page, name).getByRole('checkbox')
    const all = page.getByRole('checkbox', { name: 'Select all' })
    await row(page, 'llm-pretrain').waitFor()
    await all.click()
    expect([await box('notebook').isChecked(), await box('llm-pretrain').isChecked()]).toEqual([true, false])
    await box('llm-pretrain').check()
    await page.getByText('1 of another owner').waitFor()
    await page.getByRole('button', { name: 'Clear', exact: true }).click()

    // Escape takes the suggestions away first and then the filter: what is selected is what is seen then.
    const filter = page.getByRole('combobox', { name: 'Filter sessions' })
    await filter.fill('owner:mina')
    await row(page, 'notebook').waitFor({ state: 'detached' })
    expect(await all.isDisabled()).toBe(true)
    await filter.focus()
    await eventually('the filter is gone', async () => {
      if ((await filter.inputValue()) !== '') await filter.press('Escape')
      return (await filter.inputValue()) === ''
    })
    await row(page, 'notebook').waitFor()
    await all.click()
    const bar = page.getByText(/^\d+ sessions selected$/).locator('..')
    await bar.getByRole('button', { name: 'Terminate' }).click()
    const dialog = page.getByRole('dialog', { name: /^Terminate \d+ sessions\?$/ })
    const named = dialog.getByRole('list', { name: 'Sessions to terminate' })
    await named.getByRole('listitem').filter({ hasText: 'notebook' }).getByText('ada · workstation').waitFor()
    expect(await named.getByText('llm-pretrain').count()).toBe(0)
    await picture(page, 'terminate-several')
    await dialog.getByRole('button', { name: 'Terminate', exact: true }).click()
    const toast = page.getByRole('region', { name: 'About to be terminated' })
    await toast.getByText(/^\d+ sessions are terminated in \d+ s$/).waitFor()
    await toast.getByRole('button', { name: 'Undo' }).click()
    await page.getByText(/^\d+ sessions keep running$/).waitFor()
    await toast.waitFor({ state: 'detached' })
    expect((await program.sessions()).find((s) => s.name === 'notebook')?.status).toBe('RUNNING')
  })
})
