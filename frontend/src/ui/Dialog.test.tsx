import { render, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { useState } from 'react'
import { describe, expect, it } from 'vitest'
import { Dialog } from './Dialog'

function Asker({ then }: { then?: () => void }) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <button onClick={() => setOpen(true)}>ask</button>
      <input aria-label="elsewhere" />
      {open ? (
        <Dialog
          title="question"
          onCancel={() => {
            setOpen(false)
            then?.()
          }}
        >
          text
        </Dialog>
      ) : null}
    </>
  )
}

describe('a dialog', () => {
  it('gives the focus back to what opened it', async () => {
    render(<Asker />)
    await userEvent.click(screen.getByRole('button', { name: 'ask' }))
    await screen.findByRole('dialog', { name: 'question' })
    await userEvent.keyboard('{Escape}')
    await waitFor(() => expect(screen.queryByRole('dialog')).not.toBeInTheDocument())
    expect(screen.getByRole('button', { name: 'ask' })).toHaveFocus()
  })
  it('leaves the focus where its end has put it', async () => {
    render(<Asker then={() => screen.getByRole('textbox', { name: 'elsewhere' }).focus()} />)
    await userEvent.click(screen.getByRole('button', { name: 'ask' }))
    await screen.findByRole('dialog', { name: 'question' })
    await userEvent.keyboard('{Escape}')
    await waitFor(() => expect(screen.queryByRole('dialog')).not.toBeInTheDocument())
    expect(screen.getByRole('textbox', { name: 'elsewhere' })).toHaveFocus()
  })
})
