import { describe, expect, it } from 'vitest'
import type { Session, TerminalSearch } from '@/api/types.gen'
import { Browser, picture, shut } from './browser'
import { stage } from './hooks'
import { eventually, minimalImage, Program } from './program'
import { ShellPage, Wire } from './shellPage'

const program = new Program('docker')
const browser = new Browser()
let session: Session

stage(program, browser, {
  prepare: async () => {
    session = await program.running({ name: 'shells', image: minimalImage })
  },
})

async function open(query = ''): Promise<ShellPage> {
  const page = await browser.page(program, `/sessions/${session.id}`)
  const wire = new Wire(page)
  await page.goto(`${program.url}/sessions/${session.id}/terminal${query}`)
  const shell = new ShellPage(page, wire)
  await shell.ready()
  return shell
}

/** The numbered lines of a text, in their order. */
const numbers = (text: string, word: string) =>
  [...text.matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].map((m) => Number(m[1]))
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1)

describe('a terminal', () => {
  it('opens a shell by itself and runs commands in the session', async () => {
    const shell = await open()
    await shell.run('nproc; pwd; echo "cpu $((40 + 2))"')
    const rows = await shell.rows()
    expect(rows).toMatch(/^1$/m)
    expect(rows).toMatch(/^\/home\/work$/m)
    expect(rows).toMatch(/^cpu 42$/m)
    // Letters of any language go both ways, and take as many columns as programs expect: two of each of these.
    // The terminal answers at once, so nothing may echo before the answer is read.
    await shell.run("stty -echo; printf '한글🙂\\033[6n'; IFS=';' read -rd R _ column; stty echo; echo")
    await shell.run('echo column=$column')
    expect(await shell.rows()).toMatch(/^한글🙂$/m)
    expect(await shell.rows()).toMatch(/^column=7$/m)
    await picture(shell.page, 'terminal')
  })

  it('takes the size of the window, and another one when that changes', async () => {
    const shell = await open()
    await shell.run('stty size')
    const before =
      /^(\d+) (\d+)$/m
        .exec(await shell.rows())
        ?.slice(1)
        .map(Number) ?? []
    expect(before[1]).toBeGreaterThan(100)
    await shell.page.setViewportSize({ width: 900, height: 600 })
    await eventually('the shell has the new size', async () => {
      await shell.run('clear; stty size')
      const size =
        /^(\d+) (\d+)$/m
          .exec(await shell.rows())
          ?.slice(1)
          .map(Number) ?? []
      return (size[0] ?? Infinity) < (before[0] ?? 0) && (size[1] ?? Infinity) < (before[1] ?? 0)
    })
  })

  it('keeps its shell over a reload, in the middle of output, with no byte lost or doubled', async () => {
    const shell = await open()
    await shell.run('clear')
    await shell.type('for i in $(seq 1 1500); do echo "reload $i"; sleep 0.002; done; echo all-"done"')
    await eventually('some lines are there', async () => numbers(await shell.rows(), 'reload').length > 5)
    await shell.page.reload()
    await shell.live()
    await shell.page.reload()
    await shell.live()
    await shell.saw('all-done')
    expect(numbers(await shell.everything(), 'reload')).toEqual(upTo(1500))
    expect(shell.wire.gaps).toBe(0)
  })

  it('does not type answers to questions of the past into the shell', async () => {
    const shell = await open()
    // The program that asks takes its answers, up to the last letter of the last one.
    await shell.run("printf '\\033[6n\\033[c\\033[>c'; read -rs -d c one; read -rs -d c two; clear")
    await shell.page.reload()
    await shell.ready()
    await shell.run('echo nothing-"typed"')
    expect(await shell.everything()).not.toMatch(/\d+;\d+[Rc]/)
  })

  it('shows 10 MB of output whole while the page stays responsive', async () => {
    const shell = await open()
    await shell.run('clear')
    const frames = await shell.page.evaluateHandle(() => {
      const seen = { longest: 0, count: 0, on: true }
      let last = performance.now()
      const tick = (now: number) => {
        seen.longest = Math.max(seen.longest, now - last)
        seen.count += 1
        last = now
        if (seen.on) requestAnimationFrame(tick)
      }
      requestAnimationFrame(tick)
      return seen
    })
    const from = (await shell.output()).length
    const started = Date.now()
    await shell.run('seq 1 1300000')
    const took = Date.now() - started
    const { longest, count } = await frames.evaluate((seen) => ({ ...seen, on: (seen.on = false) }))
    const sent = (await shell.output()).subarray(from).toString('latin1')
    const begin = sent.indexOf('1\r\n2\r\n3\r\n')
    const wanted = upTo(1_300_000)
      .map((n) => `${n}\r\n`)
      .join('')
    expect(sent.slice(begin, begin + wanted.length) === wanted).toBe(true)
    const lines = (await shell.everything())
      .split('\n')
      .filter((line) => /^\d+$/.test(line))
      .map(Number)
    expect(lines.length).toBeGreaterThan(19_000)
    expect(lines).toEqual(upTo(1_300_000).slice(-lines.length))
    process.stdout.write(
      `10 MB: ${(wanted.length / 1e6).toFixed(1)} MB in ${took} ms, ${count} frames, longest ` +
        `${Math.round(longest)} ms\n`,
    )
    // A slow machine takes longer for each frame and for all: how many there were tells whether the page was held up.
    expect(count).toBeGreaterThan(20)
    expect(longest).toBeLessThan(took / 2)
  })

  it('holds several shells as tabs, each going on while another is shown', async () => {
    const shell = await open()
    const { page } = shell
    await shell.run('clear; export MARK=first')
    await shell.type('for i in $(seq 1 200); do echo "behind $i"; sleep 0.005; done')
    await page.getByRole('button', { name: 'New shell' }).click()
    await eventually('two tabs', async () => (await page.locator('[data-tab]').count()) >= 2)
    await page.locator('[data-tab]').last().click()
    await shell.ready()
    await shell.run('echo "mark is [$MARK]"')
    expect(await shell.rows()).toContain('mark is []')
    await picture(page, 'terminal-tabs')
    await page.locator('[data-tab]').first().click()
    await eventually('the first shell went on', async () => numbers(await shell.rows(), 'behind').includes(200))
    expect(numbers(await shell.everything(), 'behind')).toEqual(upTo(200))
    await page.locator('[data-tab]').last().hover()
    await page
      .getByRole('button', { name: /^Close / })
      .last()
      .click()
    await eventually('one tab is left', async () => (await page.locator('[data-tab]').count()) === 1)
  })

  it('says how a shell ended and starts another', async () => {
    const shell = await open()
    await shell.type('exit 7')
    await shell.page.getByText('The shell exited with code 7.').waitFor()
    await picture(shell.page, 'terminal-exit')
    await shell.page.getByRole('status').getByRole('button', { name: 'New shell' }).click()
    await shell.page.getByText('The shell exited with code 7.').waitFor({ state: 'detached' })
    await shell.ready()
    await shell.run('echo again-"here"')
  })

  it('copies with Ctrl+C what is selected, and interrupts when nothing is', async () => {
    const shell = await open()
    await shell.run('clear')
    await shell.run('echo copy-me-please')
    await shell.page.keyboard.press('Control+Shift+A')
    await shell.page.keyboard.press('Control+C')
    await eventually('the clipboard has it', async () =>
      (await shell.page.evaluate(() => navigator.clipboard.readText())).includes('copy-me-please'),
    )
    await shell.type('sleep 1000')
    await shell.page.keyboard.press('Control+C')
    await shell.saw('^C')
    await shell.run('echo after-"interrupt"')
  })

  it('pastes with Ctrl+Shift+V, asking first where lines would run at once', async () => {
    const shell = await open()
    const { page } = shell
    const clip = (text: string) => page.evaluate((t) => navigator.clipboard.writeText(t), text)
    await shell.run("clear; bind 'set enable-bracketed-paste off' 2>/dev/null")
    await clip('echo one-"line"')
    await page.keyboard.press('Control+Shift+V')
    await eventually('it is at the prompt', async () => (await shell.rows()).includes('echo one-"line"'))
    await page.keyboard.press('Enter')
    await shell.saw('one-line')
    await clip('echo first-"pasted"\necho second-"pasted"\n')
    await page.keyboard.press('Control+Shift+V')
    const question = page.getByRole('dialog', { name: 'Paste and run 2 lines?' })
    await question.waitFor()
    await picture(page, 'terminal-paste')
    await question.getByRole('button', { name: 'Cancel' }).click()
    await question.waitFor({ state: 'hidden' })
    expect(await shell.rows()).not.toContain('first-pasted')
    await page.locator('[data-active="true"] .xterm-helper-textarea').focus()
    await page.keyboard.press('Control+Shift+V')
    await question.getByRole('button', { name: 'Paste' }).click()
    await shell.saw('first-pasted')
    await shell.saw('second-pasted')
  })

  it('finds text in what was printed', async () => {
    const shell = await open()
    await shell.run('clear; seq 1 300 | sed s/^/row-/')
    await shell.page.keyboard.press('Control+Shift+F')
    await shell.page.getByRole('textbox', { name: 'Find' }).fill('row-17')
    await shell.page
      .getByRole('search')
      .getByText(/of 11$/)
      .waitFor()
    await picture(shell.page, 'terminal-search')
    await shell.page.keyboard.press('Escape')
    await shell.page.getByRole('search').waitFor({ state: 'detached' })
  })

  it('finds a line among 100,000 of all shells while one waits', async () => {
    const shell = await open()
    await shell.run('clear; seq 1 100000 | sed s/^/line-/')
    const started = Date.now()
    const found = await program.call<TerminalSearch>('GET', `/sessions/${session.id}/terminal-search?q=LINE-77777`)
    process.stdout.write(`search: 100,000 lines in ${Date.now() - started} ms\n`)
    expect(found.matches.map((match) => `${match.before}${match.text}${match.after}`)).toEqual(['line-77777'])
    await shell.page.getByRole('button', { name: 'Search all shells' }).click()
    const dialog = shell.page.getByRole('dialog', { name: 'Search all shells' })
    await dialog.getByRole('searchbox').fill('LINE-77777')
    await shell.page.keyboard.press('Enter')
    await dialog.locator('mark').waitFor()
  })

  it('follows addresses of the web alone, and asks before it does', async () => {
    const shell = await open()
    const { page } = shell
    const press = async (line: string) => {
      const box = await page.locator('[data-active="true"] .xterm-rows > div', { hasText: line }).last().boundingBox()
      if (!box) throw new Error(`${line} is not shown`)
      await page.keyboard.down('Control')
      // The pointer has to come over an address before it can be pressed.
      await page.mouse.move(box.x + 40, box.y + box.height / 2)
      await page.mouse.move(box.x + 44, box.y + box.height / 2)
      await page.locator('[data-active="true"] .xterm-cursor-pointer').waitFor()
      await page.mouse.click(box.x + 44, box.y + box.height / 2)
      await page.keyboard.up('Control')
    }
    await shell.run(
      "clear; printf 'https://elsewhere.test/%s\\n' page; printf " +
        "'\\033]8;;https://truth.test/\\033\\\\https://pretence.test\\033]8;;\\033\\\\\\n'",
    )
    await press('elsewhere.test/page')
    const elsewhere = page.getByRole('dialog', { name: 'Open elsewhere.test in the browser?' })
    await elsewhere.getByText('https://elsewhere.test/page').waitFor()
    await picture(page, 'terminal-link')
    await elsewhere.getByRole('button', { name: 'Cancel' }).click()
    await elsewhere.waitFor({ state: 'hidden' })
    await press('https://pretence.test')
    await page
      .getByRole('dialog', { name: 'Open truth.test in the browser?' })
      .getByRole('button', { name: 'Cancel' })
      .click()
    await shell.run(`clear; echo ${program.url}/login`)
    await press(`${program.url}/login`)
    const inside = page.getByRole('dialog', { name: /^Open 127\.0\.0\.1/ })
    await inside.getByText('refers to the container of the session').waitFor()
    const [opened] = await Promise.all([
      browser.context.waitForEvent('page'),
      inside.getByRole('button', { name: 'Open in the browser' }).click(),
    ])
    await opened.waitForURL(`${program.url}/sessions`) // who is logged in goes on from there
    await shut(opened)
  })

  it('is watched by two windows at once', async () => {
    const one = await open()
    await one.run('clear')
    const two = await open()
    await one.run('echo seen-by-"both"')
    await two.saw('seen-by-both')
    await two.run('echo typed-"there"')
    await one.saw('typed-there')
  })

  it('opens in a window of its own, without the frame', async () => {
    const shell = await open()
    const [popup] = await Promise.all([
      browser.context.waitForEvent('page'),
      shell.page.getByRole('button', { name: 'Open in a new window' }).click(),
    ])
    const own = new ShellPage(popup)
    await own.live()
    expect(await popup.getByRole('navigation').count()).toBe(0)
    await popup.setViewportSize({ width: 1000, height: 680 })
    await picture(popup, 'terminal-window')
    await shut(popup)
  })
})
