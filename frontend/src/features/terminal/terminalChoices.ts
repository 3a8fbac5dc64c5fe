import { useStored } from '@/lib/stored'

/** How shells look and sound on this screen: the font and the colours that suit it belong to it, not to the person. */
export interface TerminalChoices {
  /** A font of this computer that goes before Slipway's own; empty: none. */
  family: string
  theme: 'follow' | 'light' | 'dark' | 'contrast' | 'solarized-light' | 'solarized-dark'
  bell: 'visual' | 'sound' | 'none'
  /** When to ask before a paste: where its lines would run at once, wherever it has several, never. */
  paste: 'runs' | 'several' | 'never'
  /** Screen readers are told what is printed. */
  reader: boolean
}

export const themes = ['follow', 'light', 'dark', 'contrast', 'solarized-light', 'solarized-dark'] as const
export const bells = ['visual', 'sound', 'none'] as const
export const guards = ['runs', 'several', 'never'] as const

export const defaultChoices: TerminalChoices = { family: '', theme: 'follow', bell: 'visual', paste: 'runs', reader: false }

const within = <T extends string>(value: unknown, all: readonly T[], usual: T): T => all.find((one) => one === value) ?? usual

/** The choices as they were stored, whatever a former version has stored. */
export function readChoices(stored: unknown): TerminalChoices {
  const { family, theme, bell, paste, reader } = (stored ?? {}) as Partial<Record<keyof TerminalChoices, unknown>>
  return {
    family: typeof family === 'string' ? cleanFamily(family) : '',
    theme: within(theme, themes, defaultChoices.theme),
    bell: within(bell, bells, defaultChoices.bell),
    paste: within(paste, guards, defaultChoices.paste),
    reader: reader === true,
  }
}

/** A font's name without what would end it in a list of fonts. */
export const cleanFamily = (name: string): string => name.replace(/[^\p{L}\p{N} ._-]/gu, '').trim().slice(0, 64)

export function useTerminalChoices(): [TerminalChoices, (change: Partial<TerminalChoices>) => void] {
  const [stored, store] = useStored<unknown>('terminal', defaultChoices)
  const choices = readChoices(stored)
  return [choices, (change) => store({ ...choices, ...change })]
}
