// What a person may choose for terminals, in the order in which it is offered.
export const terminalThemes = ['follow', 'light', 'dark', 'contrast', 'solarized-light', 'solarized-dark'] as const
export const terminalBells = ['visual', 'sound', 'none'] as const
export const terminalPastes = ['runs', 'several', 'never'] as const

/** A font's name without what would end it in a list of fonts. */
export const cleanFamily = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N} ._-]/gu, '')
    .trim()
    .slice(0, 64)
