import { useQuery } from '@tanstack/react-query'
import { Button, Skeleton } from 'antd'
import { Download } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { asProblem, call } from '@/api/client'
import type { ServiceRef } from '@/api/services'
import { saveText } from '@/lib/save'
import { CopyButton } from '@/ui/CopyButton'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './services.module.css'

/** The recipe of a service, to be copied or kept as a file. */
export function ServiceRecipe({ of: { name, agent }, onClose }: { of: ServiceRef; onClose: () => void }) {
  const { t } = useTranslation(['services', 'recipes'])
  const query = useQuery({
    queryKey: ['service-recipe', agent, name],
    queryFn: ({ signal }) => call('service-recipe', { path: { service: name }, query: { agent }, signal }),
    gcTime: 0,
  })
  const recipe = query.data
  const save = recipe ? (
    <Button
      type="primary"
      icon={<Download size={14} />}
      onClick={() => saveText(recipe.fileName, 'application/yaml', recipe.yaml)}
    >
      {t('recipes:save')}
    </Button>
  ) : null
  return (
    <Dialog width={720} title={t('recipes:titleOf', { name })} onCancel={onClose} footer={save}>
      {query.error ? (
        <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
      ) : recipe ? (
        <div className={css.form}>
          <p className={css.small}>{t('services:recipe.text')}</p>
          <div className={css.codeBox}>
            <pre className={css.code} tabIndex={0} aria-label={t('services:recipe.button')}>
              {recipe.yaml}
            </pre>
            <CopyButton text={recipe.yaml} label={t('services:recipe.copy')} />
          </div>
        </div>
      ) : (
        <Skeleton active paragraph={{ rows: 8 }} />
      )}
    </Dialog>
  )
}
