import { findVersion, firstChoice } from '@/api/environment'
import { HIDDEN } from '@/api/rules.gen'
import type { Agent, Environment, Machine, Recent, Session, Spec } from '@/api/types.gen'
import { parseBytes } from '@/lib/bytes'
import { isLive } from '@/lib/status'

/** What one click starts. */
export interface Offer {
  key: string
  kind: 'new' | 'last' | 'pinned'
  /** Of the entry in the history; empty for a new one. */
  name: string
  spec: Spec
  count: number
  owner: string
  /** What its image has of Jupyter, which opens by itself; empty: nothing does. */
  jupyter: string
  /** It runs already, or is on its way: nothing has to be launched. */
  session?: Session
  /** Something has to be entered or looked at first: the click leads to the launcher. */
  review: boolean
}

/** What offers are made of. */
export interface Known {
  environments: readonly Environment[]
  recents: readonly Recent[]
  sessions: readonly Session[]
  agents: readonly Agent[]
  machines: readonly Machine[]
}

const GIB = 1024 ** 3

/** How many pinned entries are offered. */
const PINNED = 6

/** Two CPUs and 4 GiB where this computer has plenty, less where it has not; what the environment needs in any case. */
export function usualResources(family: Environment | undefined, machine: Machine | undefined): Spec['resources'] {
  const cpu = machine && machine.cpus < 4 ? 1 : 2
  const memory = machine && machine.memory < 16 * GIB ? 2 * GIB : 4 * GIB
  return {
    cpu: Math.max(cpu, family?.minCpu ?? 0),
    memory: Math.max(memory, parseBytes(family?.minMemory) ?? 0),
  }
}

/** The home of a new notebook is kept without a question, for as long as the launcher proposes. */
const KEEP = '30d'

/**
 * A new notebook: the first choice of environment, on this computer if it has room. setting is how long the person
 * keeps homes; empty or 0: not.
 */
export function newOffer({ environments, agents, machines }: Known, setting = ''): Offer | null {
  const local = agents.find((agent) => agent.local)?.name ?? ''
  const image = firstChoice(environments, local)
  const found = findVersion(environments, image)
  if (!found?.version.jupyter) return null
  const spec: Spec = {
    type: 'interactive',
    image,
    resources: usualResources(
      found.family,
      machines.find((machine) => machine.agent === local),
    ),
    keepHome: setting && setting !== '0' ? setting : KEEP,
  }
  const { jupyter } = found.version
  return { key: 'new', kind: 'new', name: '', spec, count: 1, owner: '', jupyter, review: false }
}

/** An entry of the history, as one click starts it again. */
function again(recent: Recent, kind: Offer['kind'], { environments, sessions }: Known): Offer {
  const live = sessions.filter((session) => isLive(session.status))
  const session = live.find((one) => one.id === recent.session)
  const jupyter = findVersion(environments, recent.spec.image)?.version.jupyter ?? ''
  const spec = { ...recent.spec }
  // Another session has the name: the new one gets a random one.
  if (live.some((one) => one.name === spec.name)) delete spec.name
  const review = Boolean(spec.notBefore) || (spec.env ?? []).some(({ value }) => value === HIDDEN)
  return {
    key: recent.id,
    kind,
    name: recent.name,
    spec,
    count: recent.count,
    owner: recent.owner ?? '',
    jupyter: spec.type !== 'batch' && recent.count === 1 ? jupyter : '',
    ...(session && recent.count === 1 ? { session } : {}),
    review,
  }
}

/** The last notebook and the pinned entries, the newest first. */
export function recentOffers(known: Known): Offer[] {
  const newest = known.recents.toSorted((a, b) => b.launchedAt.localeCompare(a.launchedAt))
  const offers = newest.map((recent) => again(recent, 'pinned', known))
  const last = offers.find((offer) => offer.jupyter !== '')
  const pinned = newest.filter((recent) => recent.pinned).map((recent) => recent.id)
  const rest = offers.filter((offer) => offer !== last && pinned.includes(offer.key)).slice(0, PINNED)
  return [...(last ? [{ ...last, kind: 'last' as const }] : []), ...rest]
}
