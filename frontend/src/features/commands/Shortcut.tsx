import css from './commands.module.css'

/** Keys as they are written on keyboards: "Ctrl+K". */
export function Shortcut({ keys }: { keys: string }) {
  // The last key may itself be a plus.
  const parts = keys.split(/\+(?=.)/)
  return (
    <span className={css.keys}>
      {parts.map((part) => (
        <kbd key={part}>{part}</kbd>
      ))}
    </span>
  )
}
