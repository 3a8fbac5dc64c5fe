import { Button } from 'antd'
import { FileUp } from 'lucide-react'
import { useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { type RecipeFile, useRecipeFile } from './useRecipeFile'

/** Chooses a recipe's file. */
export function OpenRecipe({ onRead, label }: { onRead: (file: RecipeFile) => void; label?: string }) {
  const { t } = useTranslation('recipes')
  const { read, reading } = useRecipeFile(onRead)
  const field = useRef<HTMLInputElement>(null)
  return (
    <>
      <Button icon={<FileUp size={15} />} loading={reading} onClick={() => field.current?.click()}>
        {label ?? t('open')}
      </Button>
      <input
        ref={field}
        type="file"
        hidden
        accept=".yaml,.yml,.json"
        aria-label={t('openField')}
        onChange={(event) => {
          const file = event.target.files?.[0]
          event.target.value = '' // the same file may be chosen again
          if (file) void read(file)
        }}
      />
    </>
  )
}
