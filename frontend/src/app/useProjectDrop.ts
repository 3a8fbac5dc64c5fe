import { App } from 'antd'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useAgents, useMachines } from '@/api/hooks'
import { pickedOf, type Picked } from '@/features/files/picked'
import { asksWindow, comesFromOutside, directoryOf } from '@/lib/dropped'
import { isAsked } from './isAsked'

/** A directory that was dropped onto the page: its path if the window told it, else its files. */
export type Drop = { path: string } | { name: string; picked: Picked[] }

/** What the window says of a drop: see app/drop.go. */
interface Told {
  path?: string
  unnamed?: boolean
}

/**
 * Takes what is dropped where nothing else takes it, and says whether such a drag is over the page. What a part of the
 * page takes, such as an upload into a folder, that part has prevented the default of.
 */
export function useProjectDrop(onDrop: (drop: Drop) => void): boolean {
  const { t } = useTranslation(['folders', 'files'])
  const { message } = App.useApp()
  const local = useAgents().data?.find((a) => a.local)?.name
  const simulated = useMachines().data?.some((m) => m.agent === local && m.engine === 'sim') ?? false
  const [over, setOver] = useState(false)
  const awaited = useRef(false) // the window still has to say the path
  useEffect(() => {
    let inner = false // the drag began in the page
    let depth = 0 // entering an element comes before leaving the last one
    const end = () => {
      inner = false
      depth = 0
      setOver(false)
    }
    const concerns = (event: DragEvent): event is DragEvent & { dataTransfer: DataTransfer } =>
      !inner && event.dataTransfer !== null && comesFromOutside(event.dataTransfer)
    const takes = (event: DragEvent) => !event.defaultPrevented && !isAsked('[data-takes-drop]')
    const take = (transfer: DataTransfer) => {
      const directory = directoryOf(transfer)
      awaited.current = asksWindow(transfer)
      if (awaited.current) return
      if (!directory) return void message.info(t('folders:drop.onlyFolder'))
      pickedOf(transfer).then(
        (picked) => onDrop({ name: directory.name, picked }),
        (error: DOMException) => void message.error(t('files:unreadable', { reason: error.message })),
      )
    }
    const listeners = {
      dragstart: () => (inner = true),
      dragend: end,
      pointermove: () => depth > 0 && end(), // a drag sends none: it has ended elsewhere
      dragenter: (event: DragEvent) => concerns(event) && depth++,
      dragleave: (event: DragEvent) => concerns(event) && --depth <= 0 && end(),
      dragover: (event: DragEvent) => {
        if (!concerns(event)) return
        setOver(takes(event))
        event.preventDefault()
      },
      drop: (event: DragEvent) => {
        if (!concerns(event)) return
        end()
        const taken = !takes(event)
        event.preventDefault() // a browser would leave the page for the file
        awaited.current = false
        if (!taken) take(event.dataTransfer)
      },
      'slipway:drop': ({ detail }: CustomEvent<Told>) => {
        if (!awaited.current) return
        awaited.current = false
        if (detail.unnamed) void message.info(t('folders:drop.unnamed'))
        else if (!detail.path) void message.info(t('folders:drop.onlyFolder'))
        else if (simulated) void message.info(t('folders:drop.simulated'))
        else onDrop({ path: detail.path })
      },
    }
    const all = Object.entries(listeners) as [string, EventListener][]
    for (const [name, listener] of all) window.addEventListener(name, listener)
    return () => all.forEach(([name, listener]) => window.removeEventListener(name, listener))
  }, [t, message, simulated, onDrop])
  return over
}
