import { Progress } from 'antd'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { type FilePlace, removeFile } from '@/api/files'
import { asProblem, type ApiProblem } from '@/api/client'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './files.module.css'

interface Doomed {
  path: string
  /** As people see it. */
  name: string
}

interface RemoveDialogProps {
  place: FilePlace
  some: readonly Doomed[]
  onClose: () => void
  /** Something is gone. */
  onDone: () => void
}

/**
 * Deletes one thing after the other, says how far that is, and stops where it is cancelled, also within a directory.
 */
export function RemoveDialog({ place, some, onClose, onDone }: RemoveDialogProps) {
  const { t } = useTranslation(['files', 'common'])
  const stop = useRef<AbortController | null>(null)
  const [done, setDone] = useState<number | null>(null)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  useEffect(() => () => stop.current?.abort(), [])
  const running = done !== null
  const go = async () => {
    const controller = (stop.current = new AbortController())
    setProblem(null)
    let failed: ApiProblem | null = null
    for (const [index, one] of some.entries()) {
      setDone(index)
      try {
        await removeFile(place, one.path, controller.signal)
      } catch (error) {
        const problem = asProblem(error)
        if (!problem.code.endsWith('_not-found')) failed ??= problem // what is gone is gone
      }
      if (controller.signal.aborted) break
    }
    onDone()
    if (controller.signal.aborted || !failed) return onClose()
    setDone(null)
    setProblem(failed)
  }
  const leave = () => {
    if (running) stop.current?.abort()
    else onClose()
  }
  const [only] = some
  return (
    <Dialog
      title={
        some.length === 1
          ? t('files:remove.title', { name: only?.name ?? '' })
          : t('files:remove.titleMany', { count: some.length })
      }
      okText={t('files:remove.go')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ danger: true, loading: running }}
      onOk={() => void go()}
      onCancel={leave}
    >
      <div className={css.remove}>
        {running ? t('files:remove.running', { name: some[done]?.name ?? '' }) : t('files:remove.text')}
        {running && some.length > 1 ? (
          <Progress
            size="small"
            percent={Math.round((done / some.length) * 100)}
            format={() => t('files:remove.done', { done, all: some.length })}
          />
        ) : null}
        {problem ? <ErrorState compact problem={problem} /> : null}
      </div>
    </Dialog>
  )
}
