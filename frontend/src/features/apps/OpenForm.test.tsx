import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { describe, expect, it, vi } from 'vitest'
import { renderView } from '@/api/testing/render'
import { OpenForm } from './OpenForm'

const show = () => {
  const onOpen = vi.fn()
  renderView(
    <OpenForm
      app={{ id: 'notebook', title: 'Notebook', kind: 'web', port: 0, state: 'stopped', url: '' }}
      onOpen={onOpen}
      onCancel={() => {}}
    />,
  )
  return { onOpen, port: screen.getByRole('spinbutton'), go: screen.getByRole('button', { name: 'Open Notebook' }) }
}

describe('how an app is opened', () => {
  it.each(['80', '1023', '65536', '0', '-5'])('not by port %s', async (text) => {
    const { onOpen, port, go } = show()
    await userEvent.type(port, `${text}{Enter}`)
    expect(screen.getByRole('alert')).toHaveTextContent('Enter a port from 1024 to 65535.')
    expect(port).toHaveValue(text)
    expect(go).toBeDisabled()
    expect(onOpen).not.toHaveBeenCalled()
  })
  it.each([
    ['1024', { port: 1024 }],
    ['65535', { port: 65535 }],
    [' ', {}],
  ])('by what was written: "%s"', async (text, wish) => {
    const { onOpen, port, go } = show()
    await userEvent.type(port, text)
    await userEvent.click(go)
    expect(onOpen).toHaveBeenCalledWith(wish)
  })
})
