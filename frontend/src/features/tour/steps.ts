/** One step of the tour: a control that is really there, on the page where it is. Its name is the key of its words. */
export interface Step {
  name: 'panels' | 'list' | 'doors' | 'launcher' | 'folders' | 'gpus' | 'usage' | 'agents' | 'lid' | 'palette' | 'mark'
  path: string
  /** Finds the control. */
  anchor: string
  /** Where the words stand; elsewhere below or above it. */
  placement?: 'left'
}

/** What begins a page below the header: of that page, since the one before has such a thing too. */
const head = (path: string) => `[data-page="${path}"] [data-tour="head"]`

const everywhere: readonly Step[] = [
  { name: 'panels', path: '/sessions', anchor: '[data-tour="panels"]' },
  { name: 'list', path: '/sessions', anchor: '[data-tour="list"]' },
  { name: 'doors', path: '/sessions', anchor: '[data-tour="doors"]:not(:has(button:disabled))', placement: 'left' },
  { name: 'launcher', path: '/launcher', anchor: '[data-tour="steps"]' },
  { name: 'folders', path: '/folders', anchor: head('/folders') },
  { name: 'gpus', path: '/gpus', anchor: 'main article' },
  { name: 'usage', path: '/usage', anchor: head('/usage') },
  { name: 'agents', path: '/agents', anchor: 'main article[data-agent]' },
]

/** The steps of the tour: in a demo it also shows what only that has. */
export function stepsOf(demo: { lab: string } | undefined): readonly Step[] {
  return [
    ...everywhere,
    ...(demo?.lab ? [{ name: 'lid', path: '/sessions', anchor: '[data-tour="lid"]' } as const] : []),
    { name: 'palette', path: '/sessions', anchor: 'header [aria-keyshortcuts]' },
    ...(demo ? [{ name: 'mark', path: '/sessions', anchor: '[data-tour="mark"]' } as const] : []),
  ]
}
