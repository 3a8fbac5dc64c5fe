import { useEffect } from 'react'
import { useNavigate } from 'react-router'

/** Goes where the window's menu and its links ask for. Without an answer the window loads the page: see app/menu.go. */
export function useWindowGo(): void {
  const navigate = useNavigate()
  useEffect(() => {
    const go = (event: Event) => {
      event.preventDefault()
      void navigate((event as CustomEvent<string>).detail)
    }
    window.addEventListener('slipway:go', go)
    return () => window.removeEventListener('slipway:go', go)
  }, [navigate])
}
