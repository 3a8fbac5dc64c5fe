/** An address in a shell's output that may be followed. */
export interface PrintedLink {
  href: string
  /** Where it leads: what a person judges it by. */
  host: string
  /** It means the container that has printed it, which this computer's browser does not reach by it. */
  inside: boolean
}

const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/

/** Reads an address that a program has printed; null where it is not of the web. */
export function readLink(uri: string): PrintedLink | null {
  const url = URL.canParse(uri) ? new URL(uri) : null
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') return null
  return { href: url.href, host: url.host, inside: LOOPBACK.test(url.hostname) }
}
