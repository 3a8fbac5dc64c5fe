import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Image, Operation, Session } from '@/api/types.gen'
import { Browser, picture } from './browser'
import { stage } from './hooks'
import { Lab, passphrase } from './lab'
import { eventually, minimalImage, Program } from './program'

// A session of this computer goes to a machine behind ssh and back, over a cable that is taken out meanwhile.
const lab = new Lab()
const program = new Program('docker', lab.env)
const browser = new Browser()
const docker = process.env.SLIPWAY_TEST_DOCKER ?? ''
let session: Session
let local = ''

beforeAll(() => lab.open())
afterAll(() => lab.close())
stage(program, browser)

/** Runs a command in the container of a session, as its person. */
async function inside(one: Session, command: string): Promise<string> {
  const said = await program.cli('exec', one.id, '--', 'sh', '-c', command)
  return said.trim()
}

/** All that a copy must keep: names, kinds, modes, times to the second, links and content. */
const tree =
  `cd /home/work && find big deep -printf '%p %y %m %T@\\n' | sed 's/\\.[0-9]*$//' | sort && readlink notes && ` +
  `find big deep -type f -exec sha256sum {} + | sort`

const answer = async (o: Operation, text: string) =>
  program.call('POST', `/operations/${o.id}/answer`, { prompt: o.prompt?.id ?? '', text })
const operation = (id: string) => program.call<Operation>('GET', `/operations/${id}`)
const step = (o: Operation, name: string) => o.steps.find((one) => one.name === name)

async function addLab(): Promise<void> {
  lab.docker(docker)
  const begun = await program.call<Operation>('POST', '/agents', { address: 'ssh://lab' })
  await eventually('the lab is added', async () => {
    const o = await operation(begun.id)
    if (o.prompt?.kind === 'host-key') await answer(o, 'yes')
    if (o.prompt?.kind === 'passphrase') await answer(o, passphrase)
    if (o.state === 'failed') throw new Error(JSON.stringify(o.error))
    return o.state === 'done'
  })
}

describe('a session that moves', () => {
  let before = ''

  it('says what goes with it, and goes on after the cable was out twice', async () => {
    await addLab()
    local = (await program.agents()).find((a) => a.local)?.name ?? ''
    session = await program.running({ name: 'study', agent: local, image: minimalImage })
    await inside(
      session,
      'cd ~ && head -c 30000000 /dev/urandom > big && mkdir -p deep/er && echo one > deep/er/note && ' +
        'chmod 700 deep/er && touch -d 2001-02-03T04:05:06 deep/er/note deep/er && ln -s big notes && ' +
        'echo installed > /tmp/installed',
    )
    before = await inside(session, tree)
    const page = await browser.page(program, `/sessions/${session.id}`)
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Move or copy…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Move or copy study' })
    await dialog.getByText(/files of its home and folders, 28.6 MiB/).waitFor()
    await picture(page, 'move-plan')
    lab.cable.stallAfter(8 * 1024 ** 2) // in the middle of the home
    await dialog.getByRole('button', { name: 'Move', exact: true }).click()
    const begun = await eventually('it is copied', async () => {
      const all = await program.call<Operation[]>('GET', '/operations')
      const o = all.find((one) => one.kind === 'session-move')
      return o && (o.progress?.done ?? 0) > 4 * 1024 ** 2 && o
    })
    await picture(page, 'move-copies')
    lab.cable.mend()
    await eventually('it is stopped', async () =>
      ['running', 'ok'].includes(step(await operation(begun.id), 'park')?.state ?? ''),
    )
    lab.cable.cut()
    await eventually('it is kept', async () => step(await operation(begun.id), 'park')?.state === 'ok')
    lab.cable.mend()
    await dialog.getByText(/^study runs on lab\. Permanently delete/).waitFor()
    await picture(page, 'move-asks')
    const moved = await program.session('study')
    expect([moved.agent, moved.status, moved.from]).toEqual(['lab', 'RUNNING', session.id])
    expect(await inside(moved, tree)).toBe(before)
    expect(await inside(moved, 'cat /tmp/installed')).toBe('installed')
    const o = await operation(begun.id)
    expect(step(o, 'describe')?.detail).toMatch(/^(\d+) of \1 layers are there already$/) // it is the same engine
    await dialog.getByRole('button', { name: 'No' }).click()
    await eventually('it has ended', async () => (await operation(begun.id)).state === 'done')
    session = moved
  })

  it('comes back, and only what has changed is sent', async () => {
    await inside(session, 'cd ~ && rm deep/er/note && echo two > deep/er/new')
    before = await inside(session, tree)
    const said = await program.cli('move', '--yes', 'study', local)
    expect(said).toContain(`study runs on ${local} now.`)
    const back = await program.session('study')
    expect(back.agent).toBe(local)
    expect(await inside(back, tree)).toBe(before)
    const all = await program.call<Operation[]>('GET', '/operations')
    expect(step(all[0] as Operation, 'sync-0')?.detail).toMatch(/were there already/)
    const folders = await program.call<{ name: string; agent: string; state: string }[]>('GET', '/folders')
    expect(folders.filter((f) => f.agent === 'lab' && f.state === 'ready').map((f) => f.name)).toEqual(['.cache'])
    const left = await promisify(execFile)('docker', ['-H', docker, 'ps', '-aq', '--filter', 'name=slipway-trial'])
    expect(left.stdout).toBe('')
  })

  it('is copied while it runs', async () => {
    const source = await program.session('study')
    const images = async () =>
      (await program.call<Image[]>('GET', '/images'))
        .flatMap((one) => one.refs)
        .filter((ref) => ref.includes(':study-'))
    const earlier = await images()
    await program.cli('move', '--copy', '--yes', '--name', 'twin', 'study', 'lab')
    const copy = await program.session('twin')
    expect([copy.agent, copy.status]).toEqual(['lab', 'RUNNING'])
    expect(await inside(copy, tree)).toBe(before)
    expect(await inside(copy, 'cat /tmp/installed')).toBe('installed')
    const still = await program.session('study')
    expect([still.id, still.agent, still.status]).toEqual([source.id, local, 'RUNNING'])
    // Both machines have one engine, as have other tests.
    const made = new Set((await images()).filter((ref) => !earlier.includes(ref)))
    expect([...made]).toEqual([copy.image])
  })
})
