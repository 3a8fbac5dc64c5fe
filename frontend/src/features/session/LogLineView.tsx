import { parseAnsi } from '@/lib/ansi'
import { formatClock } from '@/lib/time'
import type { LogLine } from './logBuffer'
import css from './LogsView.module.css'

/** Cuts text where it holds what is looked for, whatever its case; every second piece is a hit. */
function splitHits(text: string, needle: string): string[] {
  if (!needle) return [text]
  const pieces: string[] = []
  const lower = text.toLowerCase()
  const wanted = needle.toLowerCase()
  let from = 0
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    pieces.push(text.slice(from, at), text.slice(at, at + needle.length))
    from = at + needle.length
  }
  pieces.push(text.slice(from))
  return pieces
}

export function LogLineView({ line, times, needle }: { line: LogLine; times: boolean; needle: string }) {
  return (
    <>
      {times && line.time ? (
        <span className={css.time} title={line.time}>
          {formatClock(line.time)}
        </span>
      ) : null}
      <span>
        {parseAnsi(line.text).map((span, i) => {
          const themed = typeof span.colour === 'number'
          const look = [themed ? css[`c${span.colour}`] : '', span.bold ? css.bold : ''].join(' ').trim()
          const style = {
            color: typeof span.colour === 'string' ? span.colour : undefined,
            background: span.background,
            fontStyle: span.italic ? 'italic' : undefined,
            textDecoration: span.underline ? 'underline' : undefined,
          }
          return (
            <span key={i} className={look || undefined} style={style}>
              {splitHits(span.text, needle).map((piece, j) =>
                j % 2 ? (
                  <mark key={j} className={css.hit} style={{ color: 'inherit' }}>
                    {piece}
                  </mark>
                ) : (
                  piece
                ),
              )}
            </span>
          )
        })}
      </span>
    </>
  )
}
