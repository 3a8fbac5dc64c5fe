import { describe, expect, it } from 'vitest'
import type { Folder } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { enter, row, step } from './launcherPage'
import { DemoProgram, eventually } from './program'

// What becomes of the home of a session: it is kept where a person wants it, found again, and the next one's.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

const folder = async (name: string) => (await program.call<Folder[]>('GET', '/folders')).find((f) => f.name === name)
const image = 'python:3.12'

describe('the home of a session', () => {
  it('is kept from the question before the launch, and is the home of the next session', async () => {
    const page = await browser.page(program, '/launcher')
    await enter(page, { name: 'notes', image })
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    const question = page.getByRole('dialog', { name: 'Launch without a folder?' })
    await question.getByRole('checkbox', { name: /Keep the home directory.*30 days/ }).check()
    await picture(page, 'homes-question')
    await question.getByRole('button', { name: 'Launch' }).click()
    await row(page, 'notes').getByText('Running').waitFor()
    await program.cli('exec', 'notes', '--', 'sh', '-c', 'echo kept > todo.txt')

    await page.goto(`${program.url}/folders`)
    await page.getByText('Kept home', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'notes' }).first().click()
    await page.getByRole('dialog', { name: 'notes' }).getByRole('button', { name: 'Terminate', exact: true }).click()
    const end = page.getByRole('dialog', { name: 'Terminate notes?' })
    await end.getByText('Its home directory stays as the folder notes.').waitFor()
    await end.getByRole('button', { name: 'Terminate' }).click()
    await eventually('it has ended', async () => (await folder('notes'))?.home?.until)
    await page.goto(`${program.url}/folders`)
    await page.getByText('Deleted in a month').waitFor()
    await picture(page, 'homes-folders')

    await page.goto(`${program.url}/launcher`)
    await step(page, 'storage').click()
    await page.getByText('are deleted with the session').waitFor()
    await page.getByRole('checkbox', { name: /^Mount notes/ }).check()
    await page.getByText('The folder notes is the home directory of this session.').waitFor()
    expect(await page.getByLabel('Directory 1: path in the session').inputValue()).toBe('/home/work')
    await picture(page, 'homes-storage')
    await step(page, 'environment').click()
    await page.getByText('Enter manually', { exact: true }).click()
    await page.getByRole('combobox', { name: 'Image' }).fill(image)
    await page.keyboard.press('Tab')
    await step(page, 'type').click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('more-notes')
    await step(page, 'confirm').click()
    await page.getByText('-v notes:/home/work').waitFor()
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    await row(page, 'more-notes').getByText('Running').waitFor()
    expect(await program.cli('exec', 'more-notes', '--', 'cat', 'todo.txt')).toBe('kept\n')

    await page.goto(`${program.url}/folders`)
    await page.getByRole('button', { name: 'Keep for good: notes' }).click()
    await page.getByText('notes is kept for good.').waitFor()
    expect((await folder('notes'))?.home).toBeUndefined()
  })

  it('is kept by the setting, and an empty one is removed at the end', async () => {
    const page = await browser.page(program, '/settings')
    await page.getByRole('combobox', { name: 'Home directories' }).click()
    await page.getByTitle('Keep until unused for 7 days').click()
    await eventually('it is stored', async () => {
      const { keepHome } = await program.call<{ keepHome: string }>('GET', '/settings')
      return keepHome === '7d'
    })
    await page.goto(`${program.url}/launcher`)
    await enter(page, { name: 'by-setting', image })
    await page.getByText(/stays as a folder.*7 days/).waitFor()
    await page.getByRole('button', { name: 'Launch', exact: true }).click()
    await row(page, 'by-setting').getByText('Running').waitFor()
    const home = await eventually('the home is there', () => folder('by-setting'))
    expect(home.home?.keep).toBe('1w')
    await program.cli('stop', '--wait', 'by-setting')
    await eventually('the empty home is gone', async () => (await folder('by-setting')) === undefined)

    await page.goto(`${program.url}/launcher`)
    await step(page, 'storage').click()
    await page.getByRole('checkbox', { name: 'Keep the home directory' }).uncheck()
    await step(page, 'confirm').click()
    await page.getByText('--keep-home=0s').waitFor()
  })
})
