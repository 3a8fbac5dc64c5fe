import { Button, Dropdown } from 'antd'
import { Ellipsis, Play } from 'lucide-react'
import { memo, useState, type Dispatch } from 'react'
import { useTranslation } from 'react-i18next'
import { Markdown } from '@/ui/Markdown'
import { Editor } from './Editor'
import type { Cell } from './nbformat'
import { Outputs, Question } from './Outputs'
import type { Action, Stage } from './sheet'
import styles from './notebook.module.css'

interface CellViewProps {
  cell: Cell
  index: number
  selected: boolean
  stage: Stage | undefined
  prompt: string | undefined
  dark: boolean
  dispatch: Dispatch<Action>
  onRun: (id: string, stay: boolean) => void
  onRemove: (id: string) => void
  onAnswer: (id: string, line: string) => void
}

/** What stands before a cell: the number of its run, or that it runs. */
function mark(cell: Cell, stage: Stage | undefined): string {
  if (cell.type !== 'code') return ''
  return `[${stage === undefined ? (cell.count ?? ' ') : '*'}]`
}

function CellMenu({ cell, dispatch, onRemove }: Pick<CellViewProps, 'cell' | 'dispatch' | 'onRemove'>) {
  const { t } = useTranslation()
  const { id, type } = cell
  return (
    <Dropdown
      trigger={['click']}
      menu={{
        items: [
          { key: 'up', label: t('moveUp') },
          { key: 'down', label: t('moveDown') },
          { key: 'type', label: t(type === 'code' ? 'toText' : 'toCode') },
          { type: 'divider' },
          { key: 'remove', label: t('remove'), danger: true },
        ],
        onClick: ({ key }) => {
          if (key === 'remove') onRemove(id)
          else if (key === 'type') dispatch({ do: 'retype', id, type: type === 'code' ? 'markdown' : 'code' })
          else dispatch({ do: 'move', id, by: key === 'up' ? -1 : 1 })
        },
      }}
    >
      <Button type="text" size="small" icon={<Ellipsis size={15} />} aria-label={t('more')} />
    </Dropdown>
  )
}

/** One cell: what it says and what came of it. */
export const CellView = memo(function CellView({
  cell,
  index,
  selected,
  stage,
  prompt,
  dark,
  dispatch,
  onRun,
  onRemove,
  onAnswer,
}: CellViewProps) {
  const { t } = useTranslation()
  const [writing, setWriting] = useState(false)
  const { id } = cell
  const code = cell.type === 'code'
  const label = t(code ? 'codeCell' : 'textCell', { n: index + 1 })
  const editor = (
    <Editor
      label={label}
      text={cell.source}
      code={code}
      focused={selected && (code || writing)}
      onChange={(source) => dispatch({ do: 'edit', id, source })}
      onFocus={() => dispatch({ do: 'select', id })}
      onRun={(stay) => {
        setWriting(false)
        onRun(id, stay)
      }}
      onLeave={() => setWriting(false)}
    />
  )
  const write = () => {
    dispatch({ do: 'select', id })
    setWriting(true)
  }
  return (
    <article
      className={styles.cell}
      aria-label={label}
      data-selected={selected}
      data-stage={stage}
      data-kind={cell.type}
    >
      <div className={styles.gutter}>
        <span className="num">{mark(cell, stage)}</span>
        {code && (
          <Button
            className={styles.runCell}
            type="text"
            size="small"
            icon={<Play size={13} />}
            aria-label={t('run')}
            onClick={() => onRun(id, true)}
          />
        )}
      </div>
      <div className={styles.body}>
        {code || writing ? (
          <div className={styles.source}>{editor}</div>
        ) : (
          <div
            className={styles.markdown}
            role="button"
            tabIndex={0}
            title={t('editText')}
            onDoubleClick={write}
            onClick={() => dispatch({ do: 'select', id })}
            onKeyDown={(event) => event.key === 'Enter' && write()}
          >
            {cell.source.trim() ? <Markdown text={cell.source} /> : <p className={styles.quiet}>{t('emptyText')}</p>}
          </div>
        )}
        {code && <Outputs outputs={cell.outputs} dark={dark} />}
        {prompt !== undefined && <Question prompt={prompt} onAnswer={(line) => onAnswer(id, line)} />}
      </div>
      <div className={styles.tools}>
        <CellMenu cell={cell} dispatch={dispatch} onRemove={onRemove} />
      </div>
    </article>
  )
})
