import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import type { Cause, EndImage as Made, Session } from '@/api/types.gen'
import { EndImage } from './EndImage'

const image = (change: Partial<Made>): Made => ({
  state: 'running',
  name: 'work-3',
  ref: 'slipway-custom/ada:work-3',
  size: 0,
  kept: false,
  ...change,
})
const session = (change: Partial<Made>, status: Session['status'] = 'TERMINATED') =>
  makeSession({ id: 'one', name: 'work', status, endImage: image(change) })
const error: Cause = { code: 'disk_write_no-space', message: 'The disk is full.', hint: 'Make room.' }

describe('the image of an end', () => {
  it('is nothing where none was asked for', () => {
    const { container } = renderView(<EndImage session={makeSession({ id: 'one' })} />)
    expect(container.querySelector('[role]')).toBeNull()
  })
  it('shows what is copied while it is made, and how to end without', () => {
    renderView(<EndImage session={session({ size: 3 << 20 }, 'TERMINATING')} />)
    expect(screen.getByRole('status')).toHaveTextContent(
      'Creating image work-3…Copying 3 MiB of changes. /home/work and mounted folders are not included.',
    )
    expect(screen.getByRole('button', { name: 'Terminate without an image…' })).toBeEnabled()
  })
  it('names the image that was made', () => {
    renderView(<EndImage session={session({ state: 'done' })} />)
    expect(screen.getByText('slipway-custom/ada:work-3')).toBeInTheDocument()
    expect(screen.getByRole('link', { name: 'Launch it' })).toHaveAttribute('href', expect.stringContaining('work-3'))
  })
  it('tells why there is none, and drops the container only after a yes', async () => {
    const sent = serve({ 'POST /api/v1/sessions/one/terminate': session({ state: 'cancelled', error }) })
    renderView(<EndImage session={session({ state: 'failed', kept: true, error })} />)
    expect(screen.getByRole('alert')).toHaveTextContent(
      'Could not create an image. The container is keptThe disk is full. Make room.disk_write_no-space',
    )
    expect(screen.getByRole('button', { name: 'Create image…' })).toBeEnabled()
    await userEvent.click(screen.getByRole('button', { name: 'Delete container' }))
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    expect(sent).toEqual([])
    await userEvent.click(screen.getByRole('button', { name: 'Delete container' }))
    await userEvent.click(screen.getAllByRole('button', { name: 'Delete container' }).at(-1) as HTMLElement)
    await waitFor(() =>
      expect(sent).toEqual([{ method: 'POST', path: '/api/v1/sessions/one/terminate', body: { forced: true } }]),
    )
  })
  it('stays with the question where the container cannot be dropped', async () => {
    serve({
      'POST /api/v1/sessions/one/terminate': () =>
        refusal(503, 'engine_connect_unavailable', 'The container engine does not answer.', 'Start it.'),
    })
    renderView(<EndImage session={session({ state: 'failed', kept: true, error })} />)
    await userEvent.click(screen.getByRole('button', { name: 'Delete container' }))
    await userEvent.click(screen.getAllByRole('button', { name: 'Delete container' }).at(-1) as HTMLElement)
    expect(await screen.findByText('The container engine does not answer.')).toBeInTheDocument()
  })
  it('offers nothing where the container is gone', () => {
    renderView(<EndImage session={session({ state: 'failed', error })} />)
    expect(screen.queryByRole('button')).toBeNull()
  })
})
