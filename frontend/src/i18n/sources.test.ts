import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { en } from './en'

// What the sources say themselves, and which of the texts they ask for.
const root = join(import.meta.dirname, '..')

interface Source {
  path: string
  tree: ts.SourceFile
}

const sources: Source[] = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path) && !/\.(test|gen)\.tsx?$|\.d\.ts$|^i18n|\/testing\//.test(path))
  .map((path) => ({
    path,
    tree: ts.createSourceFile(
      path,
      readFileSync(join(root, path), 'utf8'),
      ts.ScriptTarget.Latest,
      true,
      path.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS,
    ),
  }))

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

/** What a person reads, wherever it is written: as an attribute or as a property. */
const shown = new Set([
  'alt',
  'aria-description',
  'aria-label',
  'aria-roledescription',
  'aria-valuetext',
  'cancelText',
  'content',
  'description',
  'emptyText',
  'help',
  'hint',
  'label',
  'message',
  'note',
  'okText',
  'placeholder',
  'subTitle',
  'text',
  'title',
  'tooltip',
])

/** Says the same in every language: names, units, and what is typed letter by letter. */
const names = new Set([
  'English',
  '한국어',
  'Slipway',
  'JetBrains Mono',
  'CPU',
  'GPU',
  'VRAM',
  'MIG',
  'CSV',
  'RTT',
  'UUID',
  'PCI',
  'pid',
  'YAML',
  'h',
  'GiB·h',
  'Σ',
  'default',
])
const typed = /^(slipway run|docker run|pip install .*|[A-Z_]+_THREADS(, [A-Z_]+_THREADS)*|\S*[0-9_./:@*]\S*)$/s

const isWords = (text: string) => /\p{L}/u.test(text) && !names.has(text.trim()) && !typed.test(text.trim())
/** One small word given to a property is a name of the program's own. */
const isIdentifier = (text: string) => /^[a-z][a-zA-Z]*$/.test(text)

/** The literal texts that an expression may come to. */
function literals(node: ts.Expression | undefined): string[] {
  if (!node) return []
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isNonNullExpression(node))
    return literals(node.expression)
  if (ts.isConditionalExpression(node)) return [...literals(node.whenTrue), ...literals(node.whenFalse)]
  if (ts.isBinaryExpression(node)) {
    const { kind } = node.operatorToken
    if (kind === ts.SyntaxKind.AmpersandAmpersandToken) return literals(node.right)
    if (
      kind === ts.SyntaxKind.PlusToken ||
      kind === ts.SyntaxKind.BarBarToken ||
      kind === ts.SyntaxKind.QuestionQuestionToken
    )
      return [...literals(node.left), ...literals(node.right)]
    return []
  }
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [node.text]
  if (ts.isTemplateExpression(node)) return [node.head.text, ...node.templateSpans.map((span) => span.literal.text)]
  return []
}

/** The texts of one node that a person reads and that no translation was asked for. */
function spoken(node: ts.Node): string[] {
  if (ts.isJsxText(node)) return [node.text]
  if (ts.isJsxExpression(node) && (ts.isJsxElement(node.parent) || ts.isJsxFragment(node.parent)))
    return literals(node.expression)
  if (ts.isJsxAttribute(node) && shown.has(node.name.getText())) {
    const value = node.initializer
    return value && ts.isStringLiteral(value)
      ? [value.text]
      : value && ts.isJsxExpression(value)
        ? literals(value.expression)
        : []
  }
  if (ts.isPropertyAssignment(node) && shown.has(node.name.getText().replace(/['"]/g, '')))
    return literals(node.initializer).filter((text) => !isIdentifier(text))
  return []
}

/** The namespaces whose texts a source asks for without naming them; none: it hands keys to others. */
function namespacesOf(tree: ts.SourceFile): string[] {
  const found = new Set<string>()
  walk(tree, (node) => {
    if (ts.isCallExpression(node) && node.expression.getText() === 'useTranslation') {
      const [asked] = node.arguments
      // of several the first is what needs no name
      const first = asked && ts.isArrayLiteralExpression(asked) ? asked.elements[0] : asked
      found.add(first && ts.isStringLiteral(first) ? first.text : 'common')
    }
    if (ts.isTypeReferenceNode(node) && node.typeName.getText() === 'TFunction')
      found.add(/'(\w+)'/.exec(node.getText())?.[1] ?? 'common')
  })
  return [...found]
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** A text that is put together, as patterns of what it may come to; one hole may be anything that a key may hold. */
function patternsOf(node: ts.TemplateExpression): string[] {
  let found = [escaped(node.head.text)]
  for (const span of node.templateSpans) {
    const known = literals(span.expression).map(escaped)
    found = found.flatMap((begin) =>
      (known.length > 0 ? known : ['[\\w.-]+']).map((part) => begin + part + escaped(span.literal.text)),
    )
  }
  return found.filter(
    (pattern) => /^(\[\\w\.-\]\+|\\\.|[\w:-])*$/.test(pattern) && /\w{2}/.test(pattern.replaceAll('[\\w.-]+', '')),
  )
}

const withNamespaces = (namespaces: string[], text: string) =>
  text.includes(':')
    ? [text]
    : (namespaces.length > 0 ? namespaces : Object.keys(en)).map((namespace) => `${namespace}:${text}`)

/** What may be asked for: the texts of the sources, and the patterns of those that are put together. */
function asked(): { texts: Set<string>; patterns: RegExp[] } {
  const texts = new Set<string>()
  const patterns = new Set<string>()
  for (const { tree } of sources) {
    const namespaces = namespacesOf(tree)
    walk(tree, (node) => {
      if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node))
        withNamespaces(namespaces, node.text).forEach((text) => texts.add(text))
      if (ts.isTemplateExpression(node))
        patternsOf(node)
          .flatMap((pattern) => withNamespaces(namespaces, pattern))
          .forEach((pattern) => patterns.add(pattern))
    })
  }
  return { texts, patterns: [...patterns].map((pattern) => new RegExp(`^${pattern}$`)) }
}

type Tree = { [key: string]: string | Tree }
const keysOf = (tree: Tree, prefix: string): string[] =>
  Object.entries(tree).flatMap(([key, value]) =>
    typeof value === 'string' ? [prefix + key] : keysOf(value, `${prefix}${key}.`),
  )
const keys = Object.entries(en).flatMap(([namespace, tree]) => keysOf(tree, `${namespace}:`))
/** A text with plural forms is asked for without them. */
const plain = (key: string) => key.replace(/_(one|other)$/, '')

describe('the sources', () => {
  it('say nothing themselves that a person reads', () => {
    const found: string[] = []
    for (const { path, tree } of sources)
      walk(tree, (node) => {
        const { line } = tree.getLineAndCharacterOfPosition(node.getStart())
        for (const text of spoken(node).filter(isWords)) found.push(`${path}:${line + 1}: ${text.trim()}`)
      })
    expect(found).toEqual([])
  })

  it('ask for every text that there is', () => {
    const { texts, patterns } = asked()
    expect(
      keys.filter(
        (key) => !texts.has(plain(key)) && !texts.has(key) && !patterns.some((pattern) => pattern.test(plain(key))),
      ),
    ).toEqual([])
  })
})
