import { HOME } from '../../api/rules.gen'
import type { Draft } from './draft'
import { mountTarget } from './mountPath'
import { parseSpan, type Span, writeSpan } from './queueDraft'

/** How long a home is kept where nobody says. */
export const START_KEEP: Span = { value: 30, unit: 'd' }

/** What becomes of the home of the session: it is a folder anyway, it is kept for a time, or it is deleted. */
export type Home = { folder: string } | { keep: Span } | null

/** The home that a draft asks for. setting is the person's, for drafts that leave it to that. */
export function homeOf(draft: Draft, setting: string | undefined): Home {
  const mounted = draft.mounts.find((m) => m.folder !== undefined && mountTarget(m) === HOME)
  if (mounted?.folder) return { folder: mounted.folder }
  const keep = draft.keepHome ? draft.keepHome.span : parseSpan(setting)
  return keep && keep.value !== 0 ? { keep } : null
}

/** The spec with a home that is kept. */
export function keepingHome(spec: string): string {
  return JSON.stringify({ ...(JSON.parse(spec) as object), keepHome: writeSpan(START_KEEP) })
}
