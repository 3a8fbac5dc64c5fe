import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Browser } from './browser'
import { stage } from './hooks'
import { DemoProgram, eventually } from './program'

// What a session was asked for, as a file: kept, compared, opened, dropped, and launched again by nobody but the
// person.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

const file = (name: string, text: string): string => {
  const path = join(program.home, name)
  writeFileSync(path, text)
  return path
}

describe('recipes', () => {
  it('leave as a file with the image pinned and no secret, and come back as a filled launcher', async () => {
    await program.launch({
      name: 'train-a',
      image: 'python:3.12',
      resources: { cpu: 1, memory: 268435456 },
      env: [
        { name: 'HF_TOKEN', value: 'hunter2' },
        { name: 'SEED', value: '7' },
      ],
    })
    const sessions = await program.sessions()
    const session = sessions.find((s) => s.name === 'train-a')
    const page = await browser.page(program, `/sessions/${session?.id ?? ''}`)
    await page.getByRole('button', { name: 'Show recipe' }).click()
    const dialog = page.getByRole('dialog', { name: 'Recipe of train-a' })
    await dialog.getByText('HF_TOKEN is not saved', { exact: false }).waitFor()
    await dialog.getByText('docker run', { exact: true }).click()
    await dialog.getByRole('button', { name: 'Copy docker run' }).click()
    await eventually('the line is on the clipboard', async () =>
      /^docker run -dit --name train-a .* -e HF_TOKEN -e SEED=7 python:3\.12@sha256:[0-9a-f]{64}$/.test(
        await page.evaluate(() => navigator.clipboard.readText()),
      ),
    )
    const download = page.waitForEvent('download')
    await dialog.getByRole('button', { name: 'Save as file' }).click()
    const saved = await download
    expect(saved.suggestedFilename()).toBe('train-a.slipway.yaml')
    const text = readFileSync(await saved.path(), 'utf8')
    expect(text).toMatch(/image: python:3\.12@sha256:[0-9a-f]{64}/)
    expect(text).not.toContain('hunter2')

    await page.goto(`${program.url}/launcher`)
    await page
      .getByLabel('Recipe file')
      .setInputFiles(file('again.yaml', text.replace('name: train-a', 'name: train-b')))
    await page.getByRole('heading', { name: 'Command line' }).waitFor()
    await page.getByText(/--name train-b .*-e HF_TOKEN -e SEED=7/).waitFor()
    expect((await program.sessions()).map((s) => s.id)).toEqual(sessions.map((s) => s.id))
    expect(page.url()).not.toContain('hunter2')
  })

  it('are dropped on the launcher, and a wrong one says in which line', async () => {
    const page = await browser.page(program, '/launcher')
    await page.getByRole('heading', { name: 'Launch a session' }).waitFor()
    const drop = async (name: string, text: string) => {
      const data = await page.evaluateHandle(
        ([name, text]) => {
          const transfer = new DataTransfer()
          transfer.items.add(new File([text ?? ''], name ?? '', { type: 'application/yaml' }))
          return transfer
        },
        [name, text],
      )
      const heading = page.getByRole('heading', { name: 'Launch a session' })
      await heading.dispatchEvent('dragenter', { dataTransfer: data })
      await page.getByText('Drop a recipe').waitFor()
      await heading.dispatchEvent('drop', { dataTransfer: data })
    }
    await drop('wrong.yaml', 'image: python:3.12\nimagge: x\n')
    await page.getByText('Line 2: "imagge" is not a field here. Did you mean image?').waitFor()
    await page.getByRole('button', { name: 'Close', exact: true }).last().click()
    await drop('right.yaml', 'image: python:3.12\nname: dropped\nresources: {cpu: 2, memory: 1g}\n')
    await page.getByText(/slipway run --image python:3\.12 --name dropped --cpu 2 --mem 1g/).waitFor()
    // Back undoes it: the launcher is as it was.
    await page.goBack()
    await page
      .getByRole('radio', { name: /Interactive/ })
      .or(page.getByText('Runs one command, then ends.'))
      .first()
      .waitFor()
    expect((await program.sessions()).map((s) => s.name)).not.toContain('dropped')
  })

  it('are compared side by side, and closing changes nothing', async () => {
    await program.launch({ name: 'left-one', image: 'python:3.12', resources: { cpu: 1, memory: 268435456 } })
    const page = await browser.page(program, '/sessions')
    await page.getByRole('button', { name: 'Recent launches' }).click()
    await page.getByText('All recent launches…').click()
    await page.getByRole('button', { name: 'Compare recipes…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Compare recipes' })
    await dialog.getByRole('combobox', { name: 'First recipe' }).click()
    await page.locator('.ant-select-dropdown:visible').getByText('left-one').first().click()
    await dialog
      .getByLabel('Recipe file')
      .last()
      .setInputFiles(file('other.yaml', 'image: python:3.13\nname: left-one\nresources: {cpu: 1, memory: 256m}\n'))
    await dialog.getByRole('row', { name: /image/ }).getByText('python:3.13').waitFor()
    const before = await program.sessions()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await dialog.waitFor({ state: 'hidden' })
    expect((await program.sessions()).map((s) => s.id)).toEqual(before.map((s) => s.id))
  })
})
