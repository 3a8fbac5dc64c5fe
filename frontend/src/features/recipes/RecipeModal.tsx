import { useQuery } from '@tanstack/react-query'
import { Button, Segmented, Skeleton } from 'antd'
import { Download, GitCompareArrows } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { fetchRecipe } from '@/api/recipes'
import { asProblem } from '@/api/client'
import { keys } from '@/api/keys'
import type { Recipe } from '@/api/types.gen'
import type { RecipeSource } from '@/lib/recipe'
import { saveText } from '@/lib/save'
import { formatExact } from '@/lib/time'
import { CopyButton } from '@/ui/CopyButton'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './recipes.module.css'

const forms = ['yaml', 'command', 'docker', 'sbatch'] as const
type Form = (typeof forms)[number]

/** What a person should know of this form: what it leaves out. */
function Notes({ recipe, form }: { recipe: Recipe; form: Form }) {
  const { t } = useTranslation('recipes')
  const notes = [
    recipe.secrets.length > 0
      ? t('note.secrets', { names: recipe.secrets.join(', '), count: recipe.secrets.length })
      : '',
    recipe.passed ? t('note.passed', { when: formatExact(recipe.passed) }) : '',
    recipe.pinned ? '' : t('note.unpinned', { image: recipe.spec.image }),
    ...(form === 'docker' ? recipe.lacks : []),
  ].filter(Boolean)
  if (notes.length === 0) return null
  return (
    <ul className={css.notes}>
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  )
}

export interface RecipeModalProps {
  source: RecipeSource
  onClose: () => void
  onCompare: (source: RecipeSource) => void
}

/** A session or a launch as a recipe, to be copied in several forms, kept as a file, or compared. */
export function RecipeModal({ source, onClose, onCompare }: RecipeModalProps) {
  const { t } = useTranslation('recipes')
  const [form, setForm] = useState<Form>('yaml')
  const query = useQuery({
    queryKey: keys.recipe(source),
    queryFn: ({ signal }) => fetchRecipe(source, signal),
    gcTime: 0,
  })
  const recipe = query.data
  const text = recipe?.[form] ?? ''
  const foot = recipe ? (
    <div className={css.foot}>
      <Button icon={<GitCompareArrows size={14} />} onClick={() => onCompare(source)}>
        {t('compare')}
      </Button>
      <Button
        type="primary"
        icon={<Download size={14} />}
        onClick={() => saveText(recipe.fileName, 'application/yaml', recipe.yaml)}
      >
        {t('save')}
      </Button>
    </div>
  ) : null
  return (
    <Dialog
      width={720}
      title={recipe ? t('titleOf', { name: recipe.name }) : t('title')}
      onCancel={onClose}
      footer={foot}
    >
      <p className={css.text}>{t('text')}</p>
      {query.error ? (
        <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
      ) : recipe ? (
        <>
          <div className={css.bar}>
            <Segmented<Form>
              aria-label={t('form.label')}
              value={form}
              onChange={setForm}
              options={forms
                .filter((value) => recipe[value] !== undefined)
                .map((value) => ({ value, label: t(`form.${value}`) }))}
            />
            <CopyButton text={text} label={t('copy', { form: t(`form.${form}`) })} />
          </div>
          <pre className={css.code} tabIndex={0} aria-label={t(`form.${form}`)}>
            {text}
          </pre>
          <Notes recipe={recipe} form={form} />
        </>
      ) : (
        <Skeleton active paragraph={{ rows: 8 }} />
      )}
    </Dialog>
  )
}
