import { describe, expect, it } from 'vitest'
import { Browser } from './browser'
import { stage } from './hooks'
import { DemoProgram } from './program'

// Links from outside ask first.
const program = new DemoProgram('workstation')
const browser = new Browser()

stage(program, browser, { afresh: true })

describe('links', () => {
  it('show what they ask for and do nothing before they are allowed', async () => {
    const before = (await program.sessions()).length
    const link = encodeURIComponent('slipway://run?image=python:3.12&name=from-link&cpu=1&memory=256m')
    const page = await browser.page(program, `/link?url=${link}`)
    await page.getByText('from-link').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.waitForURL((address) => address.pathname === '/sessions')
    await page.goto(`${program.url}/link?url=${link}`)
    await page.getByRole('button', { name: 'Review in the launcher' }).click()
    await page.getByText(/slipway run --image python:3\.12 --name from-link/).waitFor()
    expect(await program.sessions()).toHaveLength(before)
  })
})
