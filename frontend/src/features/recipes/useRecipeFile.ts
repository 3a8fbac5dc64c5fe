import { App } from 'antd'
import { useCallback, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import type { Spec } from '@/api/types.gen'
import { looksLikeRecipe, RECIPE_MOST } from '@/lib/recipe'

export interface RecipeFile {
  name: string
  spec: Spec
}

/** Reads a recipe from a file. What is wrong with it is said where and why; nothing is launched. */
export function useRecipeFile(onRead: (file: RecipeFile) => void): {
  read: (file: File) => Promise<void>
  reading: boolean
} {
  const { t } = useTranslation('recipes')
  const { modal } = App.useApp()
  const [reading, setReading] = useState(false)
  const refuse = useCallback(
    (name: string, why: string) => void modal.error({ title: t('unread', { name }), content: why, okText: t('close') }),
    [modal, t],
  )
  const read = useCallback(
    async (file: File) => {
      if (!looksLikeRecipe(file.name)) return refuse(file.name, t('notOne'))
      if (file.size > RECIPE_MOST) return refuse(file.name, t('tooLarge'))
      setReading(true)
      try {
        const spec = await call('recipe-read', { body: { yaml: await file.text() } })
        onRead({ name: file.name, spec })
      } catch (error) {
        const problem = asProblem(error)
        refuse(file.name, `${problem.message} ${problem.hint}`)
      } finally {
        setReading(false)
      }
    },
    [onRead, refuse, t],
  )
  return { read, reading }
}
