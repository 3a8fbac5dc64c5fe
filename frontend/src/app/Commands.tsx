import { useTranslation } from 'react-i18next'
import { CheatSheet } from '@/features/commands/CheatSheet'
import { Palette } from '@/features/commands/Palette'
import { sections } from './sections'
import { useCommands, type Over } from './useCommands'

/** The palette with all that can be done from here. */
export function CommandPalette({
  onShow,
  onClose,
  mac,
}: {
  onShow: (over: Over) => void
  onClose: () => void
  mac: boolean
}) {
  return <Palette commands={useCommands(onShow, mac)} onClose={onClose} />
}

/** The keys, with the sections that this application has. */
export function Keys({ onClose, mac }: { onClose: () => void; mac: boolean }) {
  const { t } = useTranslation()
  return <CheatSheet sections={sections.map((s) => t(`nav.${s.name}`))} mac={mac} onClose={onClose} />
}
