import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it } from 'vitest'
import { refusal, renderView, serve } from '@/api/testing/render'
import { makeSession } from '@/api/testing/session'
import { EditableTags } from './EditableTags'

const session = makeSession({ id: 'a', tags: ['paper'] })

describe('EditableTags', () => {
  it('adds a tag to those there are', async () => {
    const sent = serve({ 'PATCH /api/v1/sessions/a': { ...session, tags: ['new', 'paper'] } })
    renderView(<EditableTags session={session} />, { known: { sessions: [session] } })
    await userEvent.click(screen.getByRole('button', { name: 'Edit tags' }))
    await userEvent.type(screen.getByRole('combobox', { name: 'Tags' }), 'new{Enter}')
    await userEvent.click(screen.getByRole('button', { name: 'Save' }))
    await waitFor(() => expect(screen.queryByRole('combobox')).not.toBeInTheDocument())
    expect(sent[0]?.body).toEqual({ tags: ['paper', 'new'] })
  })
  it('leaves everything as it was on Cancel', async () => {
    const sent = serve({})
    renderView(<EditableTags session={session} />, { known: { sessions: [session] } })
    await userEvent.click(screen.getByRole('button', { name: 'Edit tags' }))
    await userEvent.type(screen.getByRole('combobox', { name: 'Tags' }), 'new{Enter}')
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }))
    expect(screen.getByText('paper')).toBeInTheDocument()
    expect(sent).toHaveLength(0)
  })
  it('says why a tag was refused', async () => {
    serve({ 'PATCH /api/v1/sessions/a': () => refusal(422, 'session_update_invalid', '"x" is not a tag.') })
    renderView(<EditableTags session={session} />, { known: { sessions: [session] } })
    await userEvent.click(screen.getByRole('button', { name: 'Edit tags' }))
    await userEvent.click(screen.getByRole('button', { name: 'Save' }))
    expect(await screen.findByText(/is not a tag/)).toBeInTheDocument()
  })
})
