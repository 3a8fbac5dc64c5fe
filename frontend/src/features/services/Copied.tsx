import { CopyButton } from '@/ui/CopyButton'
import css from './services.module.css'

/** Text that is typed elsewhere, with a button that copies it. */
export function Copied({ text, label }: { text: string; label: string }) {
  return (
    <span className={css.copied}>
      <code>{text}</code>
      <CopyButton text={text} label={label} />
    </span>
  )
}
