import type { LucideIcon } from 'lucide-react'

/** Something that the palette can do. */
export interface Command {
  id: string
  /** The heading it stands under. */
  group: string
  label: string
  /** What else finds it: an image, another name. */
  words?: string
  /** A word at the end of its line, such as a status. */
  note?: string
  icon: LucideIcon
  /** Its own shortcut, as it is written. */
  shortcut?: string
  /** It is shown only once something was typed. */
  onlyFound?: boolean
  run: () => void
}
