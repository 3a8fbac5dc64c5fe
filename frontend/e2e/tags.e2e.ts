import { describe, expect, it } from 'vitest'
import { Browser } from './browser'
import { stage } from './hooks'
import { DemoProgram, eventually } from './program'

// Tags of several sessions at once, as a person sets them.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

describe('tags', () => {
  it('are added to several sessions and taken from them, and the form can be left', async () => {
    const sessions = [
      await program.running({ name: 'first-one', image: 'python:3.12' }),
      await program.running({ name: 'second-one', image: 'python:3.12' }),
    ]
    const tags = async () => (await Promise.all(sessions.map((s) => program.session(s.id)))).map((s) => s.tags.join())
    const page = await browser.page(program)
    for (const { name } of sessions) await page.getByRole('checkbox', { name: `Select ${name}` }).check()
    const open = page.getByRole('button', { name: 'Tags', exact: true })
    const add = page.getByRole('combobox', { name: 'Add tags' })

    await open.click()
    await add.fill('paper')
    await add.press('Enter')
    // Whoever clicks a button that something covers fails.
    await page.getByRole('tooltip').getByRole('button', { name: 'Cancel' }).click()
    await add.waitFor({ state: 'detached' })
    expect(await tags()).toEqual(['', ''])

    await open.click()
    await add.fill('paper')
    await add.press('Enter')
    await page.getByRole('button', { name: 'Change 2 sessions' }).click()
    await eventually('both have it', async () => (await tags()).join(' ') === 'paper paper')

    await open.click()
    await page.getByRole('combobox', { name: 'Remove tags' }).click()
    await page
      .locator('.ant-select-dropdown:visible')
      .locator('.ant-select-item-option-content', { hasText: 'paper' })
      .click()
    await page.getByRole('button', { name: 'Change 2 sessions' }).click()
    await eventually('neither has it', async () => (await tags()).join('') === '')
  })
})
