import { defaultKeymap, history, historyKeymap, indentLess, insertTab } from '@codemirror/commands'
import { python } from '@codemirror/lang-python'
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { EditorState, Prec } from '@codemirror/state'
import { EditorView, keymap } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--ant-purple)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ant-green-7)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--ant-volcano)' },
  { tag: tags.comment, color: 'var(--ant-color-text-tertiary)', fontStyle: 'italic' },
  {
    tag: [tags.function(tags.variableName), tags.definition(tags.variableName), tags.className],
    color: 'var(--ant-geekblue)',
  },
])

const look = EditorView.theme({
  '&': { fontSize: '13px', backgroundColor: 'transparent', color: 'var(--ant-color-text)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--ant-font-family-code)', lineHeight: '20px' },
  '.cm-content': { padding: '8px 0', caretColor: 'var(--ant-color-primary)' },
  '.cm-line': { padding: '0 12px' },
  '.cm-cursor': { borderLeftColor: 'var(--ant-color-primary)' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--ant-color-fill-secondary)' },
})

interface EditorProps {
  label: string
  text: string
  /** Whether it is Python; else text. */
  code: boolean
  focused: boolean
  onChange: (text: string) => void
  onFocus: () => void
  /** Shift+Enter goes on to the next cell, Ctrl+Enter stays. */
  onRun: (stay: boolean) => void
  onLeave: () => void
}

/** An editor that is as high as its text. */
export function Editor({ label, text, code, focused, onChange, onFocus, onRun, onLeave }: EditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const calls = useRef({ onChange, onFocus, onRun, onLeave })
  useEffect(() => {
    calls.current = { onChange, onFocus, onRun, onLeave }
  })
  const first = useRef(text)

  useEffect(() => {
    if (!host.current) return
    const run = (stay: boolean) => () => {
      calls.current.onRun(stay)
      return true
    }
    const leave = () => {
      calls.current.onLeave()
      return true
    }
    const made = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          Prec.highest(
            keymap.of([
              { key: 'Shift-Enter', run: run(false) },
              { key: 'Mod-Enter', run: run(true) },
              { key: 'Escape', run: leave },
              { key: 'Tab', run: insertTab, shift: indentLess },
            ]),
          ),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          history(),
          look,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label }),
          code
            ? [python(), indentUnit.of('    '), indentOnInput(), bracketMatching(), syntaxHighlighting(colours)]
            : [],
          EditorView.updateListener.of((update) => {
            if (update.docChanged) calls.current.onChange(update.state.doc.toString())
            if (update.focusChanged && update.view.hasFocus) calls.current.onFocus()
          }),
        ],
      }),
    })
    view.current = made
    return () => {
      first.current = made.state.doc.toString()
      made.destroy()
    }
  }, [code, label])

  useEffect(() => {
    const made = view.current
    if (made && made.state.doc.toString() !== text)
      made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: text } })
  }, [text])

  useEffect(() => {
    if (focused) view.current?.focus()
  }, [focused])

  return <div ref={host} />
}
