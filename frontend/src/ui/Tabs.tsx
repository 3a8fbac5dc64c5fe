import { type KeyboardEvent, useRef } from 'react'
import css from './Tabs.module.css'

interface TabsProps<Key extends string> {
  /** What is chosen by them. */
  label: string
  tabs: readonly { key: Key; label: string; count?: number | undefined }[]
  value: Key
  onChange: (key: Key) => void
}

const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 }

/** Tabs over what they show: one of them takes the focus, and the arrows, Home and End go through them. */
export function Tabs<Key extends string>({ label, tabs, value, onChange }: TabsProps<Key>) {
  const list = useRef<HTMLDivElement>(null)
  const go = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.key === value)
    const step = steps[event.key]
    const to =
      event.key === 'Home'
        ? 0
        : event.key === 'End'
          ? tabs.length - 1
          : step
            ? (at + step + tabs.length) % tabs.length
            : undefined
    const next = to === undefined ? undefined : tabs[to]
    if (to === undefined || !next) return
    event.preventDefault()
    onChange(next.key)
    list.current?.querySelectorAll<HTMLElement>('[role="tab"]')[to]?.focus()
  }
  return (
    <div ref={list} className={css.tabs} role="tablist" aria-label={label} onKeyDown={go}>
      {tabs.map((tab) => (
        <button
          key={tab.key}
          type="button"
          role="tab"
          aria-selected={tab.key === value}
          tabIndex={tab.key === value ? 0 : -1}
          className={`${css.tab} ${tab.key === value ? css.on : ''}`}
          onClick={() => onChange(tab.key)}
        >
          {tab.label}
          {'count' in tab ? <span className={css.count}>{tab.count ?? ''}</span> : null}
        </button>
      ))}
    </div>
  )
}
