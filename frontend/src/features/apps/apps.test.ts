import { afterEach, describe, expect, it, vi } from 'vitest'
import type { App } from '@/api/types.gen'
import { sortApps } from './appOrder'
import { inDesktopShell, openAppTab } from '@/lib/tab'

const webkit = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Safari/605.1.15'
const app = (id: string, title: string, port = 0): App => ({ id, title, kind: 'web', port, state: 'stopped', url: '' })

function fakeTab() {
  const page = document.implementation.createHTMLDocument('')
  return { document: page, opener: window as unknown, closed: false, location: { replace: vi.fn() }, close: vi.fn() }
}

afterEach(() => vi.unstubAllGlobals())

describe('apps', () => {
  it('come before ports, each in the order that a person expects', () => {
    const sorted = sortApps([
      app('port-9000', '9000', 9000),
      app('notebook', 'Jupyter Notebook'),
      app('port-8080', '8080', 8080),
      app('code-server', 'code-server'),
    ])
    expect(sorted.apps.map((a) => a.id)).toEqual(['code-server', 'notebook'])
    expect(sorted.ports.map((a) => a.port)).toEqual([8080, 9000])
  })
})

describe('the tab of an app', () => {
  it('is opened by the click, says what it waits for, and cannot reach back', () => {
    const tab = fakeTab()
    const open = vi.fn(() => tab)
    vi.stubGlobal('open', open)
    const use = openAppTab('JupyterLab', 'JupyterLab is starting…')
    expect(open).toHaveBeenCalledWith('', '_blank')
    expect(tab.opener).toBeNull()
    expect(tab.document.body.textContent).toBe('JupyterLab is starting…')
    expect(use.show('http://notebook-abc.localhost:7421/?slipway_ticket=1')).toBe(true)
    expect(tab.location.replace).toHaveBeenCalledWith('http://notebook-abc.localhost:7421/?slipway_ticket=1')
  })

  it('that was refused is tried again, and told when it stays refused', () => {
    const open = vi.fn(() => null)
    vi.stubGlobal('open', open)
    expect(openAppTab('x', 'y').show('http://a.localhost/')).toBe(false)
    expect(open).toHaveBeenCalledTimes(2)
  })

  it('does not come back when the person has closed it', () => {
    const tab = { ...fakeTab(), closed: true }
    const open = vi.fn(() => tab)
    vi.stubGlobal('open', open)
    expect(openAppTab('x', 'y').show('http://a.localhost/')).toBe(true)
    expect(open).toHaveBeenCalledTimes(1)
  })

  it('is left to the desktop shell where there is one', () => {
    expect(inDesktopShell(webkit)).toBe(true)
    expect(
      inDesktopShell(
        'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36',
      ),
    ).toBe(false)
    expect(
      inDesktopShell('Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Safari/605.1.15'),
    ).toBe(false)
  })
})
