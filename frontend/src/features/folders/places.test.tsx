import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import type { BuildChoice, BuildPlace } from '@/api/types.gen'
import { folder, known, press, rows, show } from './testing/projects'

describe('a project on another machine', () => {
  const choices: BuildChoice[] = [
    { where: '', bytes: 0, more: false },
    { where: 'through', bytes: 3 * 2 ** 20, more: false, seconds: 90 },
    { where: 'here', bytes: 0, more: true },
  ]
  const without = (...wheres: BuildPlace[]) =>
    choices.map((one) => (wheres.includes(one.where) ? { ...one, why: { text: 'It has no Docker.' } } : one))
  const open = async (offered: BuildChoice[]) => {
    const shown = show([known('a', { agent: 'lab', folder: 'g' })], [folder('g', 'lab')], {
      'POST /api/v1/folders/g/project/build/choices': offered,
    })
    await rows()
    await press('paper')
    await screen.findByRole('group', { name: 'Where to build' })
    return shown
  }
  it('is built there, unless another place is chosen by what it costs', async () => {
    const { bodies } = await open(choices)
    expect(await screen.findByRole('radio', { name: /^On lab Downloads/ })).toBeChecked()
    const through = screen.getByRole('radio', { name: /through this computer .* about 3 MiB in 1 min 30 s\.$/ })
    expect(screen.getByRole('radio', { name: /^On this computer .* size is unknown\.$/ })).toBeEnabled()
    await userEvent.click(through)
    await press('Build the image')
    await waitFor(() => expect(bodies('folders/g/project/build')).toMatchObject([{ where: 'through' }]))
  })

  it('is built at the first place that can, and says why others cannot', async () => {
    const { bodies } = await open(without('', 'through'))
    const there = await screen.findByRole('radio', { name: 'On lab It has no Docker.' })
    expect(there).toBeDisabled()
    expect(screen.getByRole('radio', { name: /^On this computer/ })).toBeChecked()
    await press('Build the image')
    await waitFor(() => expect(bodies('folders/g/project/build')).toMatchObject([{ where: 'here' }]))
  })

  it('is not built where no place can', async () => {
    await open(without('', 'through', 'here'))
    await waitFor(() => expect(screen.getAllByText('It has no Docker.')).toHaveLength(3))
    expect(screen.getByRole('button', { name: 'Build the image' })).toBeDisabled()
  })

  it('offers the places again after a build that failed', async () => {
    const failed = { id: 'o', kind: 'image-build', subject: 'paper', state: 'failed', steps: [], log: '', revision: 1 }
    show([known('a', { agent: 'lab', folder: 'g' })], [folder('g', 'lab')], {
      'POST /api/v1/folders/g/project/build/choices': choices,
      'POST /api/v1/folders/g/project/build': { ...failed, error: { code: 'image_build_failed', message: 'No.' } },
    })
    await rows()
    await press('paper')
    await screen.findByRole('radio', { name: /^On lab Downloads/ })
    await press('Build the image')
    await screen.findByText('No.')
    expect(screen.getByRole('radio', { name: /^On this computer/ })).toBeEnabled()
  })

  it('has no such choice where its machine is this computer', async () => {
    const { sent } = show([known('a')], [folder('f', 'local')])
    await rows()
    await press('paper')
    await screen.findByRole('button', { name: 'Build the image' })
    expect(screen.queryByRole('group', { name: 'Where to build' })).toBeNull()
    expect(sent.some((s) => s.path.endsWith('/choices'))).toBe(false)
  })
})
