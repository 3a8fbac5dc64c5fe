import type { ITheme } from '@xterm/xterm'

const dark: ITheme = {
  background: '#0f1416',
  foreground: '#dbe4e8',
  cursor: '#5cc0e0',
  cursorAccent: '#0f1416',
  selectionBackground: '#2c5566',
  selectionInactiveBackground: '#27404b',
  black: '#1d262a',
  red: '#f0747a',
  green: '#5cc98a',
  yellow: '#e0b355',
  blue: '#5aa9ec',
  magenta: '#c792ea',
  cyan: '#4cc3d9',
  white: '#c6d0d4',
  brightBlack: '#718088',
  brightRed: '#ff9a9f',
  brightGreen: '#85e0a9',
  brightYellow: '#f4cd7c',
  brightBlue: '#86c4fa',
  brightMagenta: '#dcb3f5',
  brightCyan: '#7adcec',
  brightWhite: '#f4f8fa',
}

const light: ITheme = {
  background: '#ffffff',
  foreground: '#1a2327',
  cursor: '#0a6c8f',
  cursorAccent: '#ffffff',
  selectionBackground: '#b9dcea',
  selectionInactiveBackground: '#d8e7ee',
  black: '#1a2327',
  red: '#b3272f',
  green: '#17703b',
  yellow: '#825000',
  blue: '#1558a8',
  magenta: '#7d3a9e',
  cyan: '#0b6a7d',
  white: '#5b686f',
  brightBlack: '#6b7880',
  brightRed: '#c4323a',
  brightGreen: '#1d8047',
  brightYellow: '#96620a',
  brightBlue: '#1f6bc4',
  brightMagenta: '#9150b4',
  brightCyan: '#0e7d93',
  brightWhite: '#3c474d',
}

const contrast: ITheme = {
  background: '#000000',
  foreground: '#ffffff',
  cursor: '#ffd700',
  cursorAccent: '#000000',
  selectionBackground: '#ffffff',
  selectionForeground: '#000000',
  selectionInactiveBackground: '#c0c0c0',
  black: '#000000',
  red: '#ff6b6b',
  green: '#4cff88',
  yellow: '#ffe14d',
  blue: '#6cb8ff',
  magenta: '#ff8cff',
  cyan: '#5cf2ff',
  white: '#ffffff',
  brightBlack: '#a8a8a8',
  brightRed: '#ff9a9a',
  brightGreen: '#8cffb4',
  brightYellow: '#ffec8c',
  brightBlue: '#a3d3ff',
  brightMagenta: '#ffb8ff',
  brightCyan: '#a3f8ff',
  brightWhite: '#ffffff',
}

/** Ethan Schoonover's sixteen, https://ethanschoonover.com/solarized. */
const solarized: ITheme = {
  black: '#073642',
  red: '#dc322f',
  green: '#859900',
  yellow: '#b58900',
  blue: '#268bd2',
  magenta: '#d33682',
  cyan: '#2aa198',
  white: '#eee8d5',
  brightBlack: '#586e75',
  brightRed: '#cb4b16',
  brightGreen: '#93a1a1',
  brightYellow: '#657b83',
  brightBlue: '#839496',
  brightMagenta: '#6c71c4',
  brightCyan: '#93a1a1',
  brightWhite: '#fdf6e3',
}

const all = {
  light,
  dark,
  contrast,
  'solarized-dark': {
    ...solarized,
    background: '#002b36',
    foreground: '#93a1a1',
    cursor: '#93a1a1',
    cursorAccent: '#002b36',
    selectionBackground: '#0f4a58',
  },
  'solarized-light': {
    ...solarized,
    background: '#fdf6e3',
    foreground: '#586e75',
    cursor: '#586e75',
    cursorAccent: '#fdf6e3',
    selectionBackground: '#e0dac3',
  },
} satisfies Record<string, ITheme>

/** The sixteen colours and the ground of a shell; every one is readable on it. */
export function screenTheme(name: keyof typeof all): ITheme {
  return all[name]
}
