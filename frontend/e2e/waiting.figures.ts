import { afterAll, expect, it } from 'vitest'
import { Browser, picture } from './browser'
import { scrollThrough, tell } from './figures'
import { stage } from './hooks'
import { row } from './launcherPage'
import { Program } from './program'

// What `make bench` measures of the list while very many sessions wait: until it is there, scrolled to its end, and
// until it shows that one of them has gone.
const many = 1000
const program = new Program('sim')
const browser = new Browser()
stage(program, browser)
afterAll(() => program.kill()) // nothing runs that would have to be ended

it('a list of sessions that wait is shown and scrolled', async () => {
  const named = (i: number) => `waits-${String(i).padStart(4, '0')}`
  let first = ''
  const notBefore = new Date(Date.now() + 86_400_000).toISOString()
  for (let i = 0; i < many; i++) {
    const wish = { name: named(i), image: 'python:3.12', command: 'true', notBefore }
    const { id } = await program.launch({ ...wish, type: 'batch' })
    first ||= id
  }
  const page = await browser.page(program, '/settings')
  const began = performance.now()
  await page.goto(`${program.url}/sessions`)
  await row(page, named(many - 1)).waitFor()
  tell(performance.now() - began, 'shown-ms')
  await picture(page, 'waiting-list')
  await scrollThrough(page.locator('[data-tour="list"]'), row(page, named(0)))
  const before = performance.now()
  await program.call('POST', `/sessions/${first}/terminate`, { forced: true })
  await row(page, named(0)).waitFor({ state: 'detached' })
  tell(performance.now() - before, 'gone-ms')
  expect((await program.sessions()).filter((s) => s.status === 'PENDING')).toHaveLength(many - 1)
})
