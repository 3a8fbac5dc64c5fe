import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { step } from './launcherPage'
import { DemoProgram, eventually } from './program'

const program = new DemoProgram('workstation')
const browser = new Browser()
const value = 'hf_geheim-und-lang'

stage(program, browser, { afresh: true })

/** The files of the demonstration that hold a text. */
function filesWith(text: string): string[] {
  return readdirSync(program.home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => contents(path).includes(text))
}

/** A file's bytes; none if it went while the folder was read. */
function contents(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    return Buffer.alloc(0)
  }
}

describe('secrets', () => {
  it('are stored in the settings and selected by name in the launcher', async () => {
    const page = await browser.page(program, '/settings')
    await page.getByRole('button', { name: 'Add a secret' }).click()
    await page.getByLabel('Name', { exact: true }).fill(`HF_TOKEN=${value}`)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('In a file that only you can read').waitFor()
    await picture(page, 'settings-secrets')
    await page.getByRole('button', { name: 'Add a login' }).click()
    await page.getByLabel('Registry', { exact: true }).fill('ghcr.io')
    await page.getByLabel('User name').fill('ada')
    await page.getByLabel('Password or token').fill(value)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('ghcr.io').waitFor()

    await page.goto(`${program.url}/launcher?step=environment`)
    await page.getByRole('checkbox', { name: 'HF_TOKEN' }).check()
    await picture(page, 'launcher-secrets')
    await eventually('the name is in the address', async () => page.url().includes('HF_TOKEN'))
    expect(page.url()).not.toContain(value)
    await step(page, 'confirm').click()
    await page.getByText('--secret HF_TOKEN').waitFor()
  })

  it('are variables of the session, and nowhere else', async () => {
    const page = await browser.page(program, '/launcher')
    const { id } = await program.running({ image: 'python:3.12', name: 'with-secret', secrets: ['HF_TOKEN'] })
    expect(await program.cli('exec', id, '--', 'sh', '-c', 'echo ${#HF_TOKEN}')).toBe(`${value.length}\n`)
    await page.goto(`${program.url}/sessions/${id}`)
    await page.getByRole('dialog').getByText('HF_TOKEN').waitFor()
    expect(await page.content()).not.toContain(value)
    // Until it ends, the value is also where the machine keeps it for the session, and in its container.
    const others = filesWith(value).filter((path) => !/\/(secrets\.json|confidential\/\w+|engine\.json)$/.test(path))
    expect(others).toEqual([])
    await program.endAll()
    // What it kept for the session goes after its end is stored, which is a moment after the end is seen.
    const kept = (path: string) => path.endsWith('secrets.json')
    await eventually('nothing else holds it', async () => filesWith(value).every(kept))
    expect(filesWith(value)).toEqual([join(program.home, 'secrets.json')])
  })
})
