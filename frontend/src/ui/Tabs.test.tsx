import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { useState } from 'react'
import { afterEach, describe, expect, it } from 'vitest'
import { Tabs } from './Tabs'

const tabs = ['all', 'batch', 'system'].map((key) => ({ key, label: key, count: 2 }))

function Held() {
  const [value, setValue] = useState('all')
  return <Tabs label="Type" tabs={tabs} value={value} onChange={setValue} />
}

afterEach(cleanup)

describe('tabs', () => {
  it('are one stop of the focus, and the arrows go round', () => {
    render(<Held />)
    const tab = (name: string) => screen.getByRole('tab', { name: `${name}2` })
    const chosen = () => screen.getByRole('tab', { selected: true })
    expect(screen.getAllByRole('tab').map((one) => one.tabIndex)).toEqual([0, -1, -1])
    tab('all').focus()
    for (const [key, name] of [
      ['ArrowRight', 'batch'],
      ['End', 'system'],
      ['ArrowRight', 'all'],
      ['ArrowLeft', 'system'],
      ['Home', 'all'],
    ] as const) {
      fireEvent.keyDown(chosen(), { key })
      expect(chosen()).toBe(tab(name))
      expect(document.activeElement).toBe(tab(name))
    }
  })
})
