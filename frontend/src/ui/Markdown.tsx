import { marked, type Token, type Tokens } from 'marked'
import { createElement, Fragment, useMemo, type ReactNode } from 'react'
import css from './Markdown.module.css'

// Markdown as elements of the page, never as HTML of its own: it may come from
// anywhere.

const safe = (href: string) => /^(https?:|mailto:|#)/i.test(href)

function inline(tokens: Token[] | undefined): ReactNode {
  return tokens?.map((token, index) => <Fragment key={index}>{inlineOne(token)}</Fragment>)
}

function inlineOne(token: Token): ReactNode {
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token.tokens)}</strong>
    case 'em':
      return <em>{inline(token.tokens)}</em>
    case 'del':
      return <del>{inline(token.tokens)}</del>
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>
    case 'br':
      return <br />
    case 'link': {
      const { href, tokens } = token as Tokens.Link
      return safe(href) ? (
        <a href={href} target="_blank" rel="noreferrer noopener">
          {inline(tokens)}
        </a>
      ) : (
        inline(tokens)
      )
    }
    case 'image': {
      const { href, text } = token as Tokens.Image
      return href.startsWith('data:image/') ? <img src={href} alt={text} /> : text
    }
    case 'text':
    case 'escape':
      return 'tokens' in token && token.tokens ? inline(token.tokens) : (token as Tokens.Text).text
    default:
      return token.raw
  }
}

function list({ ordered, start, items }: Tokens.List): ReactNode {
  const rows = items.map((item, index) => (
    <li key={index}>
      {item.task && <input type="checkbox" checked={item.checked} readOnly disabled />}
      {item.tokens.map((token, i) => (
        <Fragment key={i}>{token.type === 'text' ? inlineOne(token) : block(token)}</Fragment>
      ))}
    </li>
  ))
  return ordered ? <ol start={Number(start) || 1}>{rows}</ol> : <ul>{rows}</ul>
}

function table({ header, rows }: Tokens.Table): ReactNode {
  return (
    <table>
      <thead>
        <tr>
          {header.map((cell, i) => (
            <th key={i} style={{ textAlign: cell.align ?? undefined }}>
              {inline(cell.tokens)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, i) => (
          <tr key={i}>
            {row.map((cell, j) => (
              <td key={j} style={{ textAlign: cell.align ?? undefined }}>
                {inline(cell.tokens)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function block(token: Token): ReactNode {
  switch (token.type) {
    case 'heading':
      return createElement(`h${(token as Tokens.Heading).depth}`, null, inline(token.tokens))
    case 'paragraph':
      return <p>{inline(token.tokens)}</p>
    case 'code':
      return <pre>{(token as Tokens.Code).text}</pre>
    case 'blockquote':
      return (
        <blockquote>
          {token.tokens?.map((one, i) => (
            <Fragment key={i}>{block(one)}</Fragment>
          ))}
        </blockquote>
      )
    case 'list':
      return list(token as Tokens.List)
    case 'table':
      return table(token as Tokens.Table)
    case 'hr':
      return <hr />
    case 'space':
    case 'def':
      return null
    case 'text':
      return <p>{inlineOne(token)}</p>
    default:
      return <p>{token.raw}</p>
  }
}

/** Words with Markdown's marks, to be read. */
export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => marked.lexer(text), [text])
  return (
    <div className={css.words}>
      {tokens.map((token, index) => (
        <Fragment key={index}>{block(token)}</Fragment>
      ))}
    </div>
  )
}
