import { useMemo } from 'react'
import { useSettings } from '@/api/hooks'
import { screenTheme } from './screenTheme'
import { useTerminalChoices } from './terminalChoices'
import { useMode } from './useMode'
import type { Look } from './useShell'

const FONT = 13

/** How every shell looks and behaves at the moment. */
export function useLook(): Look {
  const mode = useMode()
  const fontSize = useSettings().data?.terminalFont || FONT
  const [{ family, theme, bell, paste, reader }] = useTerminalChoices()
  return useMemo(() => ({ fontSize, family, theme: screenTheme(theme === 'follow' ? mode : theme), bell, paste, reader }), [fontSize, family, theme, mode, bell, paste, reader])
}
