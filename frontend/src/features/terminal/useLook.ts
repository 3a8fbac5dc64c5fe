import { useMemo } from 'react'
import { useSettings } from '@/api/hooks'
import { screenTheme } from './screenTheme'
import { useMode } from './useMode'
import type { Look } from './useShell'

/** How shells look until the settings are known. */
const FONT = 14

/** How every shell looks and behaves at the moment. */
export function useLook(): Look {
  const mode = useMode()
  const {
    terminalFont: fontSize = FONT,
    terminalFamily: family = '',
    terminalTheme: theme = 'follow',
    terminalBell: bell = 'visual',
    terminalPaste: paste = 'runs',
    terminalReader: reader = false,
  } = useSettings().data ?? {}
  return useMemo(
    () => ({ fontSize, family, theme: screenTheme(theme === 'follow' ? mode : theme), bell, paste, reader }),
    [fontSize, family, theme, mode, bell, paste, reader],
  )
}
