import { useEffect } from 'react'
import { useNavigate } from 'react-router'
import { focusOf, keyCommand } from '@/features/commands/keys'
import { isAsked } from './isAsked'
import { sections } from './sections'
import type { Over } from './useCommands'

/** The filter of what is shown: it says so by data-filter. */
function focusFilter(): boolean {
  const field = [...document.querySelectorAll<HTMLElement>('[data-filter]')].findLast(
    (element) => element.getClientRects().length > 0,
  )
  const input = field?.matches('input') ? field : field?.querySelector('input')
  input?.focus()
  return Boolean(input)
}

/** Listens to the keys of the whole application. */
export function useKeys(onShow: (over: Over) => void, mac: boolean): void {
  const navigate = useNavigate()
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // The capture phase comes before a terminal; what it keeps is told by keyCommand.
      const command = keyCommand(event, focusOf(event.target), mac)
      if (!command || event.isComposing || event.repeat || isAsked()) return
      const section = command.kind === 'section' ? sections[command.place - 1] : undefined
      if (command.kind === 'palette') onShow('palette')
      else if (command.kind === 'help') onShow('keys')
      else if (command.kind === 'new') void navigate('/launcher')
      else if (section) void navigate(section.to)
      else if (!focusFilter()) return
      event.preventDefault()
      event.stopPropagation()
    }
    window.addEventListener('keydown', onKey, true)
    return () => window.removeEventListener('keydown', onKey, true)
  }, [navigate, onShow, mac])
}
