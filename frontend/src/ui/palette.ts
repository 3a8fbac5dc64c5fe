import type { GlobalToken } from 'antd'

/** Colours that tell series apart, from the theme; the first is the accent. They repeat after the eighth. */
export function seriesPalette(token: GlobalToken): string[] {
  return [
    token.colorPrimary,
    token.colorWarning,
    token.purple,
    token.green,
    token.magenta,
    token.geekblue,
    token.volcano,
    token.lime,
  ]
}

/** The same by their names in CSS, in the same order. */
const cssNames = [
  'color-primary',
  'color-warning',
  'purple',
  'green',
  'magenta',
  'geekblue',
  'volcano',
  'lime',
] as const

/** The colour of the n-th holder, session or series. */
export function partColour(n: number): string {
  return `var(--ant-${cssNames[n % cssNames.length] ?? 'color-primary'})`
}

export const foreignColour = 'var(--ant-color-text-tertiary)'
export const reservedColour = 'var(--ant-color-text-quaternary)'
