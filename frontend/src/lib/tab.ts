/**
 * AppTab is the browser tab in which an app will appear. It is opened by the
 * click itself, which no popup blocker minds, and shows that something is
 * starting until the app's address is known.
 */
export interface AppTab {
  /** No tab was asked for, so none was refused. */
  unasked?: boolean
  /** Changes what it says until the app is shown. */
  say(text: string): void
  /** Goes to the app. Reports whether the tab is there. */
  show(address: string): boolean
  /** Nothing is going to appear in it. */
  close(): void
}

/** Whether the page is shown by the desktop shell's web view, which opens app windows itself. */
export function inDesktopShell(agent: string = navigator.userAgent): boolean {
  return /Linux/.test(agent) && /AppleWebKit/.test(agent) && !/Chrom(e|ium)/.test(agent)
}

/** No tab: the app is opened by hand once it is ready, or in a window of the desktop shell. */
export const noTab: AppTab = { unasked: true, say: () => {}, show: () => false, close: () => {} }

/** Opens a tab that says title; in the desktop shell, and where the browser refuses, none. */
export function openAppTab(title: string, text: string): AppTab {
  const tab = inDesktopShell() ? null : window.open('', '_blank')
  if (tab) {
    // The app comes from another origin and must not reach back into this page.
    tab.opener = null
    announce(tab.document, title, text)
  }
  // With this page goes whoever would show the app in it.
  const close = () => tab?.close()
  window.addEventListener('pagehide', close)
  let shown = false
  const leave = () => {
    shown = true
    window.removeEventListener('pagehide', close)
  }
  return {
    say(line) {
      if (tab && !tab.closed && !shown) announce(tab.document, title, line)
    },
    show(address) {
      leave()
      if (tab && !tab.closed) {
        tab.location.replace(address)
        return true
      }
      // Closed by the person meanwhile: the wish is withdrawn.
      return tab !== null || window.open(address, '_blank', 'noopener') !== null
    },
    close() {
      leave()
      close()
    },
  }
}

function announce(page: Document, title: string, text: string): void {
  const dark = document.documentElement.dataset.theme === 'dark'
  page.title = title
  const line = page.createElement('p')
  line.textContent = text
  page.body.replaceChildren(line)
  page.body.style.cssText =
    `display:grid;place-items:center;height:100vh;margin:0;font:14px ` +
    `system-ui,sans-serif;color:${dark ? '#a3b1b8' : '#526068'};background:${dark ? '#0e1315' : '#f5f7f8'}`
}
