import { useRef, useSyncExternalStore } from 'react'

let pressed = false
const listeners = new Set<() => void>()

/** Hears presses of the main button, which may end outside the page. It also hears every element lose the focus. */
function hear({ type, target, button }: Event & { button?: number }): void {
  if (type === 'pointerdown' ? button !== 0 : type === 'blur' && target !== window) return
  pressed = type === 'pointerdown'
  listeners.forEach((listener) => listener())
}

const events = ['pointerdown', 'pointerup', 'pointercancel', 'blur']

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) events.forEach((event) => window.addEventListener(event, hear, true))
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    events.forEach((event) => window.removeEventListener(event, hear, true))
    pressed = false
  }
}

/**
 * A value that stays as it is while a button of the pointer is held down. What takes room on the page by itself must
 * not come or go then: a button that moves before it is let go has not been pressed.
 */
export function useSteady<T>(value: T): T {
  const held = useSyncExternalStore(subscribe, () => pressed)
  const steady = useRef(value)
  if (!held) steady.current = value
  return steady.current
}
