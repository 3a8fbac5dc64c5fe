import type { ITheme } from '@xterm/xterm'

const dark: ITheme = {
  background: '#0f1416', foreground: '#dbe4e8', cursor: '#5cc0e0', cursorAccent: '#0f1416',
  selectionBackground: '#2c5566', selectionInactiveBackground: '#27404b',
  black: '#1d262a', red: '#f0747a', green: '#5cc98a', yellow: '#e0b355', blue: '#5aa9ec', magenta: '#c792ea', cyan: '#4cc3d9', white: '#c6d0d4',
  brightBlack: '#718088', brightRed: '#ff9a9f', brightGreen: '#85e0a9', brightYellow: '#f4cd7c', brightBlue: '#86c4fa', brightMagenta: '#dcb3f5', brightCyan: '#7adcec', brightWhite: '#f4f8fa',
}

const light: ITheme = {
  background: '#ffffff', foreground: '#1a2327', cursor: '#0a6c8f', cursorAccent: '#ffffff',
  selectionBackground: '#b9dcea', selectionInactiveBackground: '#d8e7ee',
  black: '#1a2327', red: '#b3272f', green: '#17703b', yellow: '#825000', blue: '#1558a8', magenta: '#7d3a9e', cyan: '#0b6a7d', white: '#5b686f',
  brightBlack: '#6b7880', brightRed: '#c4323a', brightGreen: '#1d8047', brightYellow: '#96620a', brightBlue: '#1f6bc4', brightMagenta: '#9150b4', brightCyan: '#0e7d93', brightWhite: '#3c474d',
}

/** The sixteen colours and the ground of a shell; every one is readable on it. */
export function screenTheme(mode: 'light' | 'dark'): ITheme {
  return mode === 'dark' ? dark : light
}
