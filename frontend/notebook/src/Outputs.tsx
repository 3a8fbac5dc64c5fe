import { Button, Input } from 'antd'
import { useCallback, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { parseAnsi } from '@/lib/ansi'
import { Markdown } from '@/ui/Markdown'
import type { Bundle, Output } from './nbformat'
import styles from './notebook.module.css'

const hues = [
  '--ant-color-text',
  '--ant-color-error',
  '--ant-color-success',
  '--ant-color-warning',
  '--ant-geekblue',
  '--ant-magenta',
  '--ant-color-primary',
  '--ant-color-text-secondary',
]

function Ansi({ text }: { text: string }) {
  return parseAnsi(text).map((span, index) => (
    <span
      key={index}
      style={{
        color: typeof span.colour === 'number' ? `var(${hues[span.colour % 8] ?? '--ant-color-text'})` : span.colour,
        background: span.background,
        fontWeight: span.bold ? 600 : undefined,
        fontStyle: span.italic ? 'italic' : undefined,
        textDecoration: span.underline ? 'underline' : undefined,
      }}
    >
      {span.text}
    </span>
  ))
}

const frameStyle = (dark: boolean) => `<style>
:root { color-scheme: ${dark ? 'dark' : 'light'}; }
body { margin: 0; padding: 4px 0; font: 13px/1.5 'Inter Variable', system-ui, sans-serif; }
body { color: ${dark ? '#e4ebee' : '#1a2327'}; background: transparent; overflow-y: hidden; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid ${dark ? '#263035' : '#e4eaed'}; }
th { font-weight: 600; } a { color: ${dark ? '#5cc0e0' : '#0a6485'}; }
</style>`

/** HTML of a notebook stands in a frame of its own, in which no script runs. */
function Frame({ html, dark }: { html: string; dark: boolean }) {
  const { t } = useTranslation()
  const [height, setHeight] = useState(40)
  const attach = useCallback((frame: HTMLIFrameElement | null) => {
    if (!frame) return
    const measure = () => setHeight(frame.contentDocument?.documentElement.scrollHeight ?? 40)
    frame.addEventListener('load', measure)
    return () => frame.removeEventListener('load', measure)
  }, [])
  return (
    <iframe
      ref={attach}
      className={styles.frame}
      style={{ height }}
      sandbox="allow-same-origin"
      title={t('output')}
      srcDoc={frameStyle(dark) + html}
    />
  )
}

const base64 = (text: string) =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))

/** The richest form of a thing that this page can show. */
function Rich({ data, dark }: { data: Bundle; dark: boolean }) {
  const text = (kind: string) => (typeof data[kind] === 'string' ? data[kind] : undefined)
  const alt = text('text/plain') ?? ''
  const html = text('text/html')
  if (html !== undefined) return <Frame html={html} dark={dark} />
  const svg = text('image/svg+xml')
  if (svg !== undefined)
    return <img className={styles.picture} src={`data:image/svg+xml;base64,${base64(svg)}`} alt={alt} />
  for (const kind of ['image/png', 'image/jpeg', 'image/gif']) {
    const picture = text(kind)
    if (picture !== undefined)
      return <img className={styles.picture} src={`data:${kind};base64,${picture.replace(/\s/g, '')}`} alt={alt} />
  }
  const markdown = text('text/markdown')
  if (markdown !== undefined)
    return (
      <div className={styles.markdown}>
        <Markdown text={markdown} />
      </div>
    )
  if (data['application/json'] !== undefined && !alt)
    return <pre>{JSON.stringify(data['application/json'], null, 2)}</pre>
  return (
    <pre>
      <Ansi text={alt} />
    </pre>
  )
}

function One({ output, dark }: { output: Output; dark: boolean }) {
  switch (output.output_type) {
    case 'stream':
      return (
        <pre className={output.name === 'stderr' ? styles.stderr : undefined}>
          <Ansi text={output.text} />
        </pre>
      )
    case 'error':
      return (
        <pre className={styles.error} role="alert">
          <Ansi text={output.traceback.join('\n') || `${output.ename}: ${output.evalue}`} />
        </pre>
      )
    default:
      return <Rich data={output.data} dark={dark} />
  }
}

export function Outputs({ outputs, dark }: { outputs: Output[]; dark: boolean }) {
  return outputs.map((output, index) => (
    <div key={index} className={styles.output} data-output={output.output_type}>
      <One output={output} dark={dark} />
    </div>
  ))
}

/** The line that a cell waits for. */
export function Question({ prompt, onAnswer }: { prompt: string; onAnswer: (line: string) => void }) {
  const { t } = useTranslation()
  const [line, setLine] = useState('')
  return (
    <form
      className={styles.question}
      onSubmit={(event) => {
        event.preventDefault()
        onAnswer(line)
      }}
    >
      <label>
        <span>{prompt}</span>
        <Input
          size="small"
          autoFocus
          aria-label={prompt || t('answer')}
          value={line}
          onChange={(event) => setLine(event.target.value)}
        />
      </label>
      <Button size="small" htmlType="submit">
        {t('enter')}
      </Button>
    </form>
  )
}
