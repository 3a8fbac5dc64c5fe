import type { Image, ImageDisk } from '@/api/types.gen'

/** One image of the page. What it frees is unknown until the disk was measured. */
export interface ImageRow {
  image: Image
  alone: number | undefined
  containers: number
}

export type Tab = 'all' | 'custom' | 'unnamed'
export const tabs: readonly Tab[] = ['all', 'custom', 'unnamed']

/** What is shown of a machine: its images at once, and all of it with its room once the disk was measured. */
export function rowsOf(images: readonly Image[], disk: ImageDisk | undefined): ImageRow[] {
  if (!disk) return images.map((image) => ({ image, alone: undefined, containers: 0 }))
  return disk.images.map((room) => ({
    image: { ...room, agent: disk.agent },
    alone: room.alone,
    containers: room.containers,
  }))
}

export function inTab({ image }: ImageRow, tab: Tab): boolean {
  return tab === 'all' ? image.refs.length > 0 : tab === 'custom' ? Boolean(image.origin) : image.refs.length === 0
}

/** What an image is called. */
export function nameOf(image: Image): string {
  return image.origin && image.refs.length > 0 ? image.origin.name : (image.refs[0] ?? '')
}

/** The reference to launch or remove an image by. */
export function refOf(image: Image): string {
  return image.refs[0] ?? image.id
}

export function inUse({ image, containers }: ImageRow): boolean {
  return image.usedBy.length > 0 || containers > 0
}

export type CleanupGroup = 'dangling' | 'custom' | 'unused'

/** What a cleanup may take, oldest first. What anybody uses is not among it. */
export function cleanupOf(rows: readonly ImageRow[]): Record<CleanupGroup, ImageRow[]> {
  const free = rows.filter((row) => !inUse(row)).sort((a, b) => a.image.createdAt.localeCompare(b.image.createdAt))
  return {
    dangling: free.filter(({ image }) => image.refs.length === 0),
    custom: free.filter(({ image }) => image.refs.length > 0 && image.origin),
    unused: free.filter(({ image }) => image.refs.length > 0 && !image.origin),
  }
}
