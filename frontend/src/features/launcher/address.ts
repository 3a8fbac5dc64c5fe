import { FOLDER_NAME, SECRET_NAME, SESSION_NAME } from '../../api/rules.gen'
import type { Slurm } from '../../api/types.gen'
import type { Draft, MountRow } from './draft'
import { portFault } from './ports'

// The address of a page is kept by the browser, is read by whoever looks over a shoulder, and is passed on in links.

const NAME = /^[\w.-]*$/
const WORDS = /^[\p{L}\p{N} @._:/#+-]{0,64}$/u
const IMAGE = /^[\w][\w.\-/:@+]{0,511}$/
const PATH = /^[^\p{Cc}]{0,4096}$/u
const VARIABLE = /^[a-zA-Z_][a-zA-Z0-9_]*$/
const PROFILE = /^[\w.+-]{0,32}$/
const SLURM = /^[\w.,:@+&|()[\]*=-]{0,255}$/
const SBATCH = /^--[a-z-]+(=.*)?$/
/** A variable or an option of a command with the value that it gets. */
const ASSIGNED = /(?:^|[\s;&|(])(?:--([\w-]+)[= ]|([A-Za-z_]\w*)=)(?=\S)/g

const tellsSecret = (command: string) =>
  [...command.matchAll(ASSIGNED)].some(([, option, variable]) => SECRET_NAME.test(option ?? variable ?? ''))

function ofSlurm(slurm: Slurm): Slurm {
  const fits = Object.entries(slurm).filter(([, text]) => typeof text !== 'string' || SLURM.test(text))
  const options = (slurm.options ?? []).filter((option) => SBATCH.test(option) && !tellsSecret(option))
  return { ...(Object.fromEntries(fits) as Slurm), ...(slurm.options ? { options } : {}) }
}

const isFolder = (name: string) =>
  name.length <= FOLDER_NAME.max && FOLDER_NAME.parts.every(({ pattern, not }) => pattern.test(name) !== not)

const isMount = ({ source, folder, path, agent, target }: MountRow) =>
  [source, path ?? '', target].every((text) => PATH.test(text)) &&
  WORDS.test(agent ?? '') &&
  (folder === undefined ? /^($|[/~])/.test(source) : isFolder(folder))

/**
 * What of a draft may be in the address of the page. It is the only way there: a field whose text is not what belongs
 * in it is left out, since it can be anything that was pasted by mistake, and so is each value of a variable.
 */
export function addressable(draft: Draft): Draft {
  const fit = (text: string, rule: RegExp) => (rule.test(text) ? text : '')
  const { accelerator: a } = draft
  return {
    ...draft,
    name: draft.name.length <= SESSION_NAME.max ? fit(draft.name, NAME) : '',
    command: tellsSecret(draft.command) ? '' : draft.command,
    setup: tellsSecret(draft.setup) ? '' : draft.setup,
    startAt: draft.startAt && Number.isNaN(Date.parse(draft.startAt)) ? '' : draft.startAt,
    image: fit(draft.image.trim(), IMAGE),
    env: draft.env.filter(({ name }) => VARIABLE.test(name)).map(({ name }) => ({ name, value: '' })),
    secrets: draft.secrets.filter((name) => VARIABLE.test(name)),
    agent: fit(draft.agent, WORDS),
    owner: fit(draft.owner, WORDS),
    group: fit(draft.group, WORDS),
    label: fit(draft.label, WORDS),
    after: draft.after.filter((id) => id !== '' && NAME.test(id)),
    mounts: draft.mounts.filter(isMount),
    ports: draft.ports.filter((port) => portFault(port) === null),
    slurm: draft.slurm && ofSlurm(draft.slurm),
    accelerator: { ...a, profile: fit(a.profile, PROFILE) },
  }
}

const KEY = 'slipway.drafts'
/** Those before are forgotten: each step back in the history of the page has its own. */
const MOST_KEPT = 20

function keptDrafts(): [string, Draft][] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? '[]') as [string, Draft][]
  } catch {
    return []
  }
}

/**
 * Keeps a draft, in this tab alone, beside the text of it that the address has, so that a reload brings back what the
 * address leaves out. Values of secrets are kept nowhere, nor are variables whose names are none.
 */
export function rememberDraft(text: string, draft: Draft): void {
  if (text === '') return
  const env = draft.env
    .filter(({ name }) => VARIABLE.test(name))
    .map(({ name, value }) => ({ name, value: SECRET_NAME.test(name) ? '' : value }))
  const others = keptDrafts().filter(([kept]) => kept !== text)
  try {
    sessionStorage.setItem(KEY, JSON.stringify([[text, { ...draft, env }], ...others].slice(0, MOST_KEPT)))
  } catch {
    // A full or forbidden store costs only that some is to be entered again after a reload.
  }
}

/** The draft that this tab keeps for the text of an address. */
export function recallDraft(text: string): Draft | undefined {
  return text === '' ? undefined : keptDrafts().find(([kept]) => kept === text)?.[1]
}
