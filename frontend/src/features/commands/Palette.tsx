import { Search } from 'lucide-react'
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { useTranslation } from 'react-i18next'
import { Dialog } from '@/ui/Dialog'
import type { Command } from './command'
import css from './commands.module.css'
import { fuzzySort } from './fuzzy'
import { Shortcut } from './Shortcut'

/** How many are shown at once: more are found by another letter. */
const shownMost = 60

interface PaletteProps {
  commands: readonly Command[]
  onClose: () => void
}

/** The commands that fit, group by group; the group with the best one first. */
function useFound(commands: readonly Command[], query: string): [string, Command[]][] {
  return useMemo(() => {
    const offered = query.trim() === '' ? commands.filter((c) => !c.onlyFound) : commands
    const groups = new Map<string, Command[]>()
    for (const command of fuzzySort(query, offered, (c) => `${c.label} ${c.words ?? ''}`).slice(0, shownMost)) {
      groups.set(command.group, [...(groups.get(command.group) ?? []), command])
    }
    return [...groups]
  }, [commands, query])
}

function Line({
  command,
  id,
  chosen,
  onChoose,
  onRun,
}: {
  command: Command
  id: string
  chosen: boolean
  onChoose: () => void
  onRun: () => void
}) {
  const line = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (chosen) line.current?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  const Icon = command.icon
  return (
    <div
      ref={line}
      id={id}
      role="option"
      aria-selected={chosen}
      className={`${css.item} ${chosen ? css.chosen : ''}`}
      onMouseMove={onChoose}
      onClick={onRun}
    >
      <Icon size={15} aria-hidden />
      <span className={css.label}>{command.label}</span>
      {command.note ? <span className={css.note}>{command.note}</span> : null}
      {command.shortcut ? <Shortcut keys={command.shortcut} /> : null}
    </div>
  )
}

/** Goes anywhere and does anything by a few letters of its name. */
export function Palette({ commands, onClose }: PaletteProps) {
  const { t } = useTranslation('commands')
  const [query, setQuery] = useState('')
  const [chosen, setChosen] = useState('')
  const base = useId()
  const groups = useFound(commands, query)
  const flat = groups.flatMap(([, members]) => members)
  const at = Math.max(
    0,
    flat.findIndex((c) => c.id === chosen),
  )
  const current = flat[at]
  const run = (command: Command | undefined) => {
    if (!command) return
    onClose()
    command.run()
  }
  const step = (by: number) => setChosen(flat[(at + by + flat.length) % flat.length]?.id ?? '')
  const onKey = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return
    const moves: Record<string, () => void> = {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      PageDown: () => setChosen(flat[Math.min(at + 8, flat.length - 1)]?.id ?? ''),
      PageUp: () => setChosen(flat[Math.max(at - 8, 0)]?.id ?? ''),
      Enter: () => run(current),
    }
    const move = moves[event.key]
    if (!move) return
    event.preventDefault()
    move()
  }
  const idOf = (command: Command) => `${base}-${command.id}`
  return (
    <Dialog
      title={<span className="unseen">{t('title')}</span>}
      closable={false}
      footer={null}
      width={640}
      onCancel={onClose}
      centered={false}
      style={{ top: 72 }}
      styles={{ container: { padding: 0 }, header: { margin: 0, height: 0 } }}
    >
      <label className={css.field}>
        <Search size={16} aria-hidden />
        <input
          autoFocus
          role="combobox"
          aria-label={t('field')}
          aria-expanded
          aria-controls={`${base}-list`}
          aria-autocomplete="list"
          aria-activedescendant={current ? idOf(current) : undefined}
          placeholder={t('field')}
          spellCheck={false}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value)
            setChosen('')
          }}
          onKeyDown={onKey}
        />
      </label>
      <div id={`${base}-list`} role="listbox" aria-label={t('list')} tabIndex={-1} className={css.list}>
        {groups.map(([group, members]) => (
          <div key={group} role="group" aria-label={group}>
            <div className={css.group} aria-hidden>
              {group}
            </div>
            {members.map((command) => (
              <Line
                key={command.id}
                command={command}
                id={idOf(command)}
                chosen={command === current}
                onChoose={() => setChosen(command.id)}
                onRun={() => run(command)}
              />
            ))}
          </div>
        ))}
        {flat.length === 0 ? (
          <div className={css.none} role="option" aria-selected={false} aria-disabled>
            {t('nothing', { query })}
          </div>
        ) : null}
      </div>
      <div className={css.foot} aria-hidden>
        <span>
          <Shortcut keys="↑" /> <Shortcut keys="↓" /> {t('choose')}
        </span>
        <span>
          <Shortcut keys="↵" /> {t('run')}
        </span>
        <span>
          <Shortcut keys="Esc" /> {t('close')}
        </span>
      </div>
    </Dialog>
  )
}
