import { Alert, App as AntApp, Button } from 'antd'
import { Plus } from 'lucide-react'
import { useCallback, useEffect, useReducer, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { dirOf } from './paths'
import { readFile } from './api'
import { CellView } from './CellView'
import { Failure } from './Failure'
import { parseNotebook, writeNotebook, type Notebook } from './nbformat'
import type { OpenFileProps } from './OpenFile'
import { openSheet, reduce } from './sheet'
import { Toolbar } from './Toolbar'
import { useKernel } from './useKernel'
import { useSaving } from './useSaving'
import styles from './notebook.module.css'

interface SheetViewProps extends OpenFileProps {
  opened: { notebook: Notebook; version: string }
}

/** An open notebook with its Python. */
export function SheetView({ path, dark, look, files, onFiles, opened }: SheetViewProps) {
  const { t } = useTranslation()
  const { message, modal } = AntApp.useApp()
  const [sheet, dispatch] = useReducer(reduce, opened.notebook, openSheet)
  const kernel = useKernel(dirOf(path), dispatch)
  const { saving, save, taken } = useSaving(path, opened.version, sheet.revision, () => writeNotebook(sheet.notebook))
  const latest = useRef(sheet)
  useEffect(() => {
    latest.current = sheet
  })
  const { run: start, answer } = kernel

  const run = useCallback(
    (id: string, stay: boolean) => {
      const { cells } = latest.current.notebook
      const index = cells.findIndex((cell) => cell.id === id)
      const cell = cells[index]
      if (!cell) return
      if (cell.type === 'code' && cell.source.trim() && latest.current.stages[id] === undefined) start([cell])
      const next = cells[index + 1]
      if (stay) dispatch({ do: 'select', id })
      else if (next) dispatch({ do: 'select', id: next.id })
      else dispatch({ do: 'insert', after: id, type: 'code' })
    },
    [start],
  )

  const remove = useCallback(
    (id: string) => {
      const { cells } = latest.current.notebook
      const index = cells.findIndex((cell) => cell.id === id)
      const cell = cells[index]
      if (!cell) return
      dispatch({ do: 'remove', id })
      const key = `removed-${id}`
      const undo = () => {
        message.destroy(key)
        dispatch({ do: 'restore', cell, index })
      }
      void message.info({
        key,
        duration: 8,
        content: (
          <>
            {t('removed')}{' '}
            <Button type="link" size="small" onClick={undo}>
              {t('undo')}
            </Button>
          </>
        ),
      })
    },
    [message, t],
  )

  const runAll = () =>
    start(
      sheet.notebook.cells.filter(
        (cell) => cell.type === 'code' && cell.source.trim() && sheet.stages[cell.id] === undefined,
      ),
    )
  const restart = () =>
    void modal.confirm({
      title: t('restartSure'),
      content: t('restartSureText'),
      okText: t('restart'),
      cancelText: t('cancel'),
      onOk: kernel.restart,
    })
  const take = async () => {
    try {
      const { text, version } = await readFile(path)
      const notebook = parseNotebook(text)
      taken(version)
      dispatch({ do: 'load', notebook })
    } catch (error) {
      void message.error(error instanceof Error ? error.message : String(error))
    }
  }
  useSaveKey(save)

  return (
    <>
      <Toolbar
        {...{ path, files, onFiles, look, saving }}
        kernel={kernel.state}
        interruptible={kernel.interruptible}
        onSave={() => void save()}
        onRun={() => run(sheet.at, false)}
        onRunAll={runAll}
        onInterrupt={kernel.interrupt}
        onRestart={restart}
        onAdd={(type) => dispatch({ do: 'insert', after: sheet.at, type })}
        onClear={() => dispatch({ do: 'clear' })}
      />
      {saving.state === 'conflict' && (
        <Alert
          banner
          type="warning"
          title={t('conflict')}
          description={t('conflictHint')}
          action={
            <div className={styles.choices}>
              <Button size="small" onClick={() => void take()}>
                {t('takeTheirs')}
              </Button>
              <Button size="small" onClick={() => void save(true)}>
                {t('putMine')}
              </Button>
            </div>
          }
        />
      )}
      {saving.state === 'failed' && <Failure error={saving.error} onRetry={() => void save()} />}
      {kernel.state === 'failed' && (
        <Alert
          banner
          type="error"
          title={t('kernel_failed')}
          description={`${t('kernelFailedHint')} ${kernel.detail}`}
          action={
            <Button size="small" onClick={kernel.restart}>
              {t('restart')}
            </Button>
          }
        />
      )}
      <div className={styles.sheet}>
        <div className={styles.cells}>
          {sheet.notebook.cells.map((cell, index) => (
            <CellView
              key={cell.id}
              {...{ cell, index, dark, dispatch }}
              selected={cell.id === sheet.at}
              stage={sheet.stages[cell.id]}
              prompt={sheet.asked[cell.id]}
              onRun={run}
              onRemove={remove}
              onAnswer={answer}
            />
          ))}
          <footer className={styles.add}>
            <Button
              size="small"
              icon={<Plus size={14} />}
              onClick={() => dispatch({ do: 'insert', after: sheet.notebook.cells.at(-1)?.id ?? null, type: 'code' })}
            >
              {t('addCode')}
            </Button>
            <Button
              size="small"
              icon={<Plus size={14} />}
              onClick={() =>
                dispatch({ do: 'insert', after: sheet.notebook.cells.at(-1)?.id ?? null, type: 'markdown' })
              }
            >
              {t('addText')}
            </Button>
          </footer>
        </div>
      </div>
    </>
  )
}

/** Ctrl+S saves the notebook and not the page. */
function useSaveKey(save: () => Promise<void>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== 's') return
      event.preventDefault()
      void save()
    }
    window.addEventListener('keydown', press)
    return () => window.removeEventListener('keydown', press)
  }, [save])
}
