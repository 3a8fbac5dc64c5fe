import { App } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { type FilePlace, inside, moveFile } from '@/api/files'
import { movable } from './paths'

export interface Moves {
  /** Encoded paths that are held, to be put down where one goes. */
  held: readonly string[]
  /** Whether something is being dragged. */
  dragging: boolean
  hold: (paths: readonly string[]) => void
  drag: (paths: readonly string[]) => void
  /** Whether what is held or dragged can be moved to a directory. */
  able: (dir: string) => boolean
  /** Moves what is dragged, or else what is held, to a directory. */
  put: (dir: string) => Promise<void>
}

const nothing: readonly string[] = []

/** Moves entries to other directories of their place, by dragging them or in two steps. */
export function useMoves(place: FilePlace, onMoved: () => void): Moves {
  const { t } = useTranslation('files')
  const { message } = App.useApp()
  const [held, hold] = useState(nothing)
  const [dragged, drag] = useState(nothing)
  const under = dragged.length > 0 ? dragged : held
  const put = async (dir: string) => {
    const paths = under.filter((path) => movable(path, dir))
    drag(nothing)
    hold(nothing)
    const results = await Promise.allSettled(
      paths.map((path) => moveFile(place, path, inside(dir, path.split('%2F').at(-1) ?? ''))),
    )
    const failed = results.filter((result) => result.status === 'rejected')
    const [first] = failed
    if (first) {
      const { message: text, hint } = asProblem(first.reason)
      void message.error([t('moveFailed', { count: failed.length }), text, hint].filter(Boolean).join(' '))
    }
    onMoved()
  }
  return {
    held,
    dragging: dragged.length > 0,
    hold,
    drag,
    able: (dir) => under.some((path) => movable(path, dir)),
    put,
  }
}
