import { FileUp } from 'lucide-react'
import { type DragEvent, type ReactNode, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { carriesFiles, directoryOf } from '@/lib/dropped'
import css from './recipes.module.css'
import { type RecipeFile, useRecipeFile } from './useRecipeFile'

/** A part of the page on which a recipe's file may be dropped. */
export function RecipeDrop({ onRead, children }: { onRead: (file: RecipeFile) => void; children: ReactNode }) {
  const { t } = useTranslation('recipes')
  const { read } = useRecipeFile(onRead)
  const [over, setOver] = useState(false)
  // Entering a child comes before leaving its parent: only the last leave is one.
  const depth = useRef(0)
  const enter = (event: DragEvent) => {
    if (!carriesFiles(event.dataTransfer)) return
    depth.current++
    setOver(true)
  }
  const leave = (event: DragEvent) => {
    if (!carriesFiles(event.dataTransfer)) return
    depth.current = Math.max(0, depth.current - 1)
    if (depth.current === 0) setOver(false)
  }
  const drop = (event: DragEvent) => {
    if (!carriesFiles(event.dataTransfer)) return
    depth.current = 0
    setOver(false)
    const file = event.dataTransfer.files[0]
    if (!file || directoryOf(event.dataTransfer)) return // a project, which the page takes
    event.preventDefault()
    void read(file)
  }
  return (
    <div
      className={css.drop}
      onDragEnter={enter}
      onDragLeave={leave}
      onDragOver={(event) => carriesFiles(event.dataTransfer) && event.preventDefault()}
      onDrop={drop}
    >
      {children}
      {over ? (
        <div className={css.over}>
          <FileUp size={28} aria-hidden />
          {t('drop.title')}
          <span className={css.overText}>{t('drop.text')}</span>
        </div>
      ) : null}
    </div>
  )
}
