import type { Recent, Spec } from '@/api/types.gen'
import { requestText } from '@/lib/accelerator'
import { formatBytes, parseBytes } from '@/lib/bytes'

/** The pinned ones first, each part with the newest first. */
export function orderRecents(recents: Recent[]): Recent[] {
  return [...recents].sort((a, b) => Number(b.pinned) - Number(a.pinned) || b.launchedAt.localeCompare(a.launchedAt))
}

/** "4 CPU · 8 GiB · 0.5 GPU"; what is no number of devices stands as people write it. */
export function resourcesText({ resources, accelerator: asked }: Spec): string {
  const accelerator = requestText(asked)
  const memory = parseBytes(resources.memory)
  return [
    `${resources.cpu ?? 1} CPU`,
    memory ? formatBytes(memory) : '',
    /^[\d.]+$/.test(accelerator) ? `${accelerator} GPU` : accelerator,
  ]
    .filter(Boolean)
    .join(' · ')
}
