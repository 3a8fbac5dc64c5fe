import { act, waitFor } from '@testing-library/react'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { keys } from '@/api/keys'
import { renderView } from '@/api/testing/render'
import { testSettings } from '@/api/testing/session'
import { Appearance } from './Appearance'

const darkQuery = '(prefers-color-scheme: dark)'
let systemDark = false
let listeners: (() => void)[] = []

/** The system turns dark or light. */
const turn = (dark: boolean) =>
  act(() => {
    systemDark = dark
    listeners.forEach((listener) => listener())
  })

beforeEach(() => {
  systemDark = false
  listeners = []
  vi.spyOn(window, 'matchMedia').mockImplementation(
    (query) =>
      ({
        matches: query === darkQuery && systemDark,
        media: query,
        addEventListener: (_type: string, listener: () => void) => listeners.push(listener),
        removeEventListener: (_type: string, listener: () => void) =>
          (listeners = listeners.filter((l) => l !== listener)),
      }) as unknown as MediaQueryList,
  )
})

const mode = () => document.documentElement.dataset.theme
const show = (theme: typeof testSettings.theme) =>
  renderView(<Appearance>page</Appearance>, { known: { settings: { ...testSettings, theme } } })

describe('Appearance', () => {
  it('follows the system as it turns, unless a person chooses otherwise', async () => {
    const { client } = show('system')
    const choose = async (theme: typeof testSettings.theme, shown: string) => {
      client.setQueryData(keys.settings, { ...testSettings, theme })
      await waitFor(() => expect(mode()).toBe(shown))
    }
    expect(mode()).toBe('light')
    turn(true)
    expect(mode()).toBe('dark')
    await choose('light', 'light')
    turn(false)
    await choose('dark', 'dark')
    await choose('system', 'light')
    turn(true)
    expect(mode()).toBe('dark')
  })
  it('remembers what was chosen for the next start, before the settings are there', () => {
    show('dark').unmount()
    delete document.documentElement.dataset.theme
    renderView(<Appearance>page</Appearance>)
    expect(mode()).toBe('dark')
  })
})
