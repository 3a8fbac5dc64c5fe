import { useCallback, useEffect, useRef, useState } from 'react'
import { Refused, writeFile } from './api'

/** How long after the last change a notebook is saved by itself, in ms. */
const calm = 1500

export type Saving = { state: 'saved' | 'unsaved' | 'saving' | 'conflict' } | { state: 'failed'; error: unknown }

interface SavingHold {
  saving: Saving
  /** Saves now; over what is there where force says so. */
  save: (force?: boolean) => Promise<void>
  /** What is shown is now that of the file. */
  taken: (version: string) => void
}

/** Keeps the file of a notebook as the page shows it, unless somebody else writes it, too. */
export function useSaving(path: string, first: string, revision: number, text: () => string): SavingHold {
  const [saving, setSaving] = useState<Saving>({ state: 'saved' })
  const version = useRef(first)
  const written = useRef(0)
  const now = useRef({ revision, text })
  const turn = useRef<Promise<void>>(Promise.resolve())
  useEffect(() => {
    now.current = { revision, text }
  })

  const save = useCallback(
    async (force = false) => {
      const one = turn.current.then(async () => {
        const { revision, text } = now.current
        if (revision === written.current && !force) return
        setSaving({ state: 'saving' })
        try {
          version.current = await writeFile(path, text(), force ? '' : version.current)
          written.current = revision
          setSaving({ state: now.current.revision === revision ? 'saved' : 'unsaved' })
        } catch (error) {
          setSaving(
            error instanceof Refused && error.code.endsWith('_changed')
              ? { state: 'conflict' }
              : { state: 'failed', error },
          )
        }
      })
      turn.current = one
      await one
    },
    [path],
  )

  const stuck = saving.state === 'conflict' || saving.state === 'failed'
  useEffect(() => {
    if (revision === written.current || stuck) return
    setSaving((before) => (before.state === 'saved' ? { state: 'unsaved' } : before))
    const timer = setTimeout(() => void save(), calm)
    return () => clearTimeout(timer)
  }, [revision, stuck, save])

  useEffect(() => {
    const ask = (event: BeforeUnloadEvent) => {
      if (now.current.revision !== written.current) event.preventDefault()
    }
    window.addEventListener('beforeunload', ask)
    return () => {
      window.removeEventListener('beforeunload', ask)
      void save() // another notebook is opened
    }
  }, [save])

  const taken = useCallback((next: string) => {
    version.current = next
    written.current = now.current.revision + 1
    setSaving({ state: 'saved' })
  }, [])
  return { saving, save, taken }
}
