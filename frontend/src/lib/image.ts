/** A reference such as "ghcr.io/team/torch:2.4" in its parts; the registry may be empty. */
interface ImageParts {
  registry: string
  name: string
  tag: string
}

export function splitImage(reference: string): ImageParts {
  const at = reference.indexOf('@')
  const plain = at < 0 ? reference : reference.slice(0, at)
  const slash = plain.lastIndexOf('/')
  const colon = plain.lastIndexOf(':')
  const hasTag = colon > slash
  const path = hasTag ? plain.slice(0, colon) : plain
  const first = path.split('/')[0] ?? ''
  const isRegistry = path.includes('/') && (first.includes('.') || first.includes(':') || first === 'localhost')
  return {
    registry: isRegistry ? first : '',
    name: isRegistry ? path.slice(first.length + 1) : path,
    tag: at >= 0 ? reference.slice(at + 1, at + 20) : hasTag ? plain.slice(colon + 1) : 'latest',
  }
}

/** The launcher, with an image chosen. */
export function launchAddress(image: string): string {
  return `/launcher?${new URLSearchParams({ draft: JSON.stringify({ image }), step: 'environment' }).toString()}`
}
