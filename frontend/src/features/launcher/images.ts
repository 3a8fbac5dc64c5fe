import type { Environment, Image } from '@/api/types.gen'
import { parseBytes } from '@/lib/bytes'
import { findVersion, normalReference } from '@/api/environment'

export interface ImageState {
  installed: boolean
  /** Bytes on disk when installed, else an estimate of the download; 0 if unknown. */
  size: number
}

/** The images on one agent's machine; where none is chosen, those on any. */
export function imagesOn(images: readonly Image[], agent: string): readonly Image[] {
  return agent === '' ? images : images.filter((image) => image.agent === agent)
}

/** An image that another agent has and this one lacks; the one of this computer is taken first. */
export function imageElsewhere(
  reference: string,
  images: readonly Image[],
  agent: string,
  here: string,
): Image | undefined {
  const wanted = normalReference(reference)
  const holders = images.filter(
    (image) => image.id === reference.trim() || image.refs.some((ref) => normalReference(ref) === wanted),
  )
  if (agent === '' || holders.some((image) => image.agent === agent)) return undefined
  return holders.find((image) => image.agent === here) ?? holders[0]
}

/**
 * What is known of an image: whether it is there, and its size. An environment is installed where any machine has it,
 * so of a chosen one only its images count.
 */
export function imageState(
  reference: string,
  environments: readonly Environment[],
  images: readonly Image[],
  agent = '',
): ImageState {
  const wanted = normalReference(reference)
  const local = images.find(
    (image) => image.id === reference.trim() || image.refs.some((ref) => normalReference(ref) === wanted),
  )
  if (local) return { installed: true, size: local.size }
  const known = findVersion(environments, reference)
  return { installed: agent === '' && (known?.version.installed ?? false), size: known?.version.size ?? 0 }
}

/** Two letters that stand for a family where there is no picture. */
export function monogram(title: string): string {
  const words = title
    .replace(/[^\p{L}\p{N} .-]/gu, '')
    .split(/[ .-]+/)
    .filter(Boolean)
  const [first = '?', second] = words
  const capitals = first.match(/\p{Lu}/gu) ?? []
  if (second) return `${first[0] ?? ''}${second[0] ?? ''}`.toUpperCase()
  return capitals.length >= 2 ? capitals.slice(0, 2).join('') : `${first.slice(0, 1).toUpperCase()}${first.slice(1, 2)}`
}

/** A hue between 0 and 359 that a family always has. */
export function hueOf(id: string): number {
  let hash = 7
  for (const letter of id) hash = (hash * 31 + letter.charCodeAt(0)) % 3600
  return hash % 360
}

/**
 * Labels by which an image says the least that it needs: its own name first, then the one that Backend.AI's images
 * carry.
 */
const minimumLabels = {
  cpu: ['slipway.min.cpu', 'ai.backend.resource.min.cpu'],
  memory: ['slipway.min.memory', 'ai.backend.resource.min.mem'],
} as const

interface Minimum {
  cpu: number
  /** Bytes. */
  memory: number
}

/**
 * The least that an image says it needs, where it is on a machine and says so. What it leaves open is the least of
 * all.
 */
export function minimumOf(reference: string, images: readonly Image[], least: Minimum): Minimum | null {
  const wanted = normalReference(reference)
  const labels =
    images.find((image) => image.id === reference.trim() || image.refs.some((ref) => normalReference(ref) === wanted))
      ?.labels ?? {}
  const said = (names: readonly string[]) => names.map((name) => labels[name]).find((text) => text !== undefined)
  const cpu = Math.ceil(Number(said(minimumLabels.cpu) ?? NaN))
  const memory = parseBytes(said(minimumLabels.memory)) ?? NaN
  if (!(cpu > 0) && !(memory > 0)) return null
  return {
    cpu: cpu > 0 ? Math.max(cpu, least.cpu) : least.cpu,
    memory: memory > 0 ? Math.max(memory, least.memory) : least.memory,
  }
}
