import Anser from 'anser'

/** A piece of text with the look that its codes gave it. */
interface AnsiSpan {
  text: string
  /** 0 to 15, as terminals number their colours, for the theme to choose; else a colour of CSS. */
  colour?: number | string
  background?: string
  bold?: boolean
  italic?: boolean
  underline?: boolean
}

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']

/** The sixteen colours as xterm has them. */
const own = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
] as const

type Rgb = readonly [number, number, number]

/** A colour of the palette of 256: the sixteen, a cube of six levels, and greys. */
function paletteRgb(n: number): Rgb {
  const known = own[n]
  if (known) return known
  if (n >= 232) return [8 + 10 * (n - 232), 8 + 10 * (n - 232), 8 + 10 * (n - 232)]
  const level = (step: number) => (step === 0 ? 0 : 55 + 40 * step)
  return [level(Math.floor((n - 16) / 36)), level(Math.floor((n - 16) / 6) % 6), level((n - 16) % 6)]
}

/** Reads what the parser calls a colour: a number of the palette, or parts of red, green and blue. */
function read(name: string | null, parts: string | null): number | Rgb | undefined {
  if (!name) return undefined
  if (name === 'ansi-truecolor') {
    const [r = 0, g = 0, b = 0] = (parts ?? '').split(',').map(Number)
    return [r, g, b]
  }
  const palette = /^ansi-palette-(\d+)$/.exec(name)
  if (palette) return Number(palette[1])
  const bright = name.startsWith('ansi-bright-')
  return names.indexOf(name.replace(/^ansi-(bright-)?/, '')) + (bright ? 8 : 0)
}

const rgbOf = (colour: number | Rgb): Rgb => (typeof colour === 'number' ? paletteRgb(colour) : colour)
const css = ([r, g, b]: Rgb) => `rgb(${r} ${g} ${b})`

/** Black or white, whichever is read more easily on a background. */
const onTop = ([r, g, b]: Rgb) => (0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#000' : '#fff')

/** Parts a line into pieces of one look. Codes that are not about the look are left out. */
export function parseAnsi(text: string): AnsiSpan[] {
  return Anser.ansiToJson(text, { json: true, use_classes: true, remove_empty: true }).map((entry) => {
    const span: AnsiSpan = { text: entry.content }
    const colour = read(entry.fg, entry.fg_truecolor)
    const background = read(entry.bg, entry.bg_truecolor)
    if (background !== undefined) {
      span.background = css(rgbOf(background))
      span.colour = colour === undefined ? onTop(rgbOf(background)) : css(rgbOf(colour))
    } else if (colour !== undefined) {
      span.colour = typeof colour === 'number' && colour < 16 ? colour : css(rgbOf(colour))
    }
    if (entry.decorations.includes('bold')) span.bold = true
    if (entry.decorations.includes('italic')) span.italic = true
    if (entry.decorations.includes('underline')) span.underline = true
    return span
  })
}

/** Leaves every code out. */
export const stripAnsi = (text: string): string => Anser.ansiToText(text)
