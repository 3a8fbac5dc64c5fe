import type { Terminal } from '@/api/types.gen'

export interface Tab {
  terminal: Terminal
  /** It stands in the list of the session; otherwise it ended elsewhere and only its text is left. */
  listed: boolean
}

/**
 * The tabs after the list of shells was read again. A shell keeps its place and
 * the record it was opened with, whose offsets say where reading began; one that
 * disappears from the list keeps its tab until it is closed here.
 */
export function mergeTabs(tabs: readonly Tab[], list: readonly Terminal[], closed: ReadonlySet<string>): Tab[] {
  const listed = new Set(list.map((terminal) => terminal.id))
  const kept = tabs
    .filter((tab) => !closed.has(tab.terminal.id))
    .map((tab) => sameTab(tab, listed.has(tab.terminal.id)))
  const known = new Set(kept.map((tab) => tab.terminal.id))
  const added = list
    .filter((t) => !known.has(t.id) && !closed.has(t.id))
    .map((terminal) => ({ terminal, listed: true }))
  const same = added.length === 0 && kept.length === tabs.length && kept.every((tab, i) => tab === tabs[i])
  return same ? (tabs as Tab[]) : [...kept, ...added]
}

function sameTab(tab: Tab, listed: boolean): Tab {
  return tab.listed === listed ? tab : { ...tab, listed }
}

/** The tab to show when the wanted one is not there: the one after it, else the last. */
export function neighbour(tabs: readonly Tab[], gone: string): string | null {
  const at = tabs.findIndex((tab) => tab.terminal.id === gone)
  const rest = tabs.filter((tab) => tab.terminal.id !== gone)
  return (rest[Math.min(Math.max(at, 0), rest.length - 1)] ?? null)?.terminal.id ?? null
}

/** What a tab is called: the title that the program has set, else the shell's own with its number. */
export function tabLabel(terminal: Terminal, title: string | undefined, index: number): string {
  const text = (title ?? '').trim() || terminal.title.trim()
  // Which container it is in matters only beside the first.
  const place = terminal.kernel && terminal.kernel !== 'main1' ? `${terminal.kernel} · ` : ''
  return place + (text || String(index + 1))
}
