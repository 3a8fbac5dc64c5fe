import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { EmptyState } from '@/ui/EmptyState'
import { Markdown } from '@/ui/Markdown'
import { FileWarning } from 'lucide-react'
import css from './files.module.css'

interface Cell {
  kind: 'code' | 'markdown'
  source: string
  texts: string[]
  pictures: string[]
}

const joined = (value: unknown): string =>
  Array.isArray(value) ? value.filter((v) => typeof v === 'string').join('') : typeof value === 'string' ? value : ''
const record = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

/**
 * The cells of a notebook with their plain outputs and pictures; null where it is none. Nothing of it is run or taken
 * for HTML.
 */
export function parseNotebook(text: string): Cell[] | null {
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    return null
  }
  const { cells } = record(raw)
  if (!Array.isArray(cells)) return null
  return cells.map((one: unknown) => {
    const cell = record(one)
    const result: Cell = {
      kind: cell.cell_type === 'code' ? 'code' : 'markdown',
      source: joined(cell.source),
      texts: [],
      pictures: [],
    }
    for (const output of Array.isArray(cell.outputs) ? cell.outputs : []) {
      const { text: stream, data, evalue } = record(output)
      const shown = record(data)
      const picture = joined(shown['image/png']).replace(/\s/g, '')
      if (/^[A-Za-z0-9+/=]+$/.test(picture)) result.pictures.push(`data:image/png;base64,${picture}`)
      else result.texts.push(joined(stream) || joined(shown['text/plain']) || joined(evalue))
    }
    return result
  })
}

/** A notebook to be read. */
export function Notebook({ text }: { text: string }) {
  const { t } = useTranslation('files')
  const cells = useMemo(() => parseNotebook(text), [text])
  if (!cells) return <EmptyState icon={FileWarning} title={t('noNotebook')} />
  return (
    <div className={css.notebook}>
      {cells.map((cell, i) => (
        <div key={i} className={cell.kind === 'code' ? css.cell : undefined}>
          {cell.kind === 'code' ? <pre>{cell.source}</pre> : <Markdown text={cell.source} />}
          {cell.texts.filter(Boolean).map((output, k) => (
            <pre key={k} className={css.output}>
              {output}
            </pre>
          ))}
          {cell.pictures.map((src, k) => (
            <img key={k} src={src} alt={t('output')} />
          ))}
        </div>
      ))}
    </div>
  )
}
