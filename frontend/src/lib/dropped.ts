/** The one directory that was dropped; undefined: anything else. */
export function directoryOf(transfer: DataTransfer): FileSystemEntry | undefined {
  const entries = [...transfer.items].filter((item) => item.kind === 'file').map((item) => item.webkitGetAsEntry())
  const [only] = entries
  return entries.length === 1 && only?.isDirectory ? only : undefined
}

interface Bridge {
  chrome?: { webview?: { postMessageWithAdditionalObjects?: (message: string, objects: File[]) => void } }
  webkit?: { messageHandlers?: { external?: unknown } }
}

const inWebKit = () => Boolean((window as Bridge).webkit?.messageHandlers?.external)

/** Whether a drag brings files that the page can read. */
export const carriesFiles = ({ types }: DataTransfer) => types.includes('Files')

/** Whether a drag brings anything of the computer. WebKitGTK keeps files from the page, and calls them addresses. */
export const comesFromOutside = (transfer: DataTransfer) =>
  carriesFiles(transfer) || (inWebKit() && transfer.types.includes('text/uri-list'))

/**
 * Whether the page is in the program's window, which then sends the path of what was dropped as the event
 * `slipway:drop`. WebView2 leaves it to the page to send the files to the window.
 */
export function asksWindow(transfer: DataTransfer): boolean {
  if (inWebKit()) return true
  const { chrome } = window as Bridge
  if (!chrome?.webview?.postMessageWithAdditionalObjects) return false
  chrome.webview.postMessageWithAdditionalObjects('file:drop:0:0', [...transfer.files])
  return true
}
