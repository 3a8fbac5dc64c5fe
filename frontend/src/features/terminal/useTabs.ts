import { useCallback, useEffect, useRef, useState } from 'react'
import { mergeTabs, type Tab } from './tabs'

/** The shells, merged with the list whenever it is read. */
export function useTabs(list: Parameters<typeof mergeTabs>[1] | undefined) {
  const [tabs, setTabs] = useState<Tab[]>([])
  const closedIds = useRef(new Set<string>())
  useEffect(() => {
    if (list) setTabs((old) => mergeTabs(old, list, closedIds.current))
  }, [list])
  const closed = useCallback((id: string) => {
    closedIds.current.add(id)
    setTabs((old) => old.filter((tab) => tab.terminal.id !== id))
  }, [])
  return { tabs, closed }
}
