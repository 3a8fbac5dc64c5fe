import { Input, Segmented, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { useFolders } from '@/api/folders'
import { MODEL_TARGET, runtimes } from '@/api/runtimes.gen'
import { DefinitionField } from './DefinitionField'
import { FormCard } from './FormCard'
import { FormField } from './FormField'
import css from './form.module.css'
import type { CardProps } from './ServiceForm'

const none: never[] = []

/** Where the server finds its model, and what clients call it. */
export function ModelCard({ draft, faults, change }: CardProps) {
  const { t } = useTranslation('services')
  const runtime = runtimes[draft.runtime]
  const { sources } = runtime
  return (
    <FormCard title={t('form.model')}>
      {sources.length > 1 ? (
        <Segmented
          className={css.start ?? ''}
          aria-label={t('form.source')}
          value={draft.source}
          options={sources.map((source) => ({ value: source, label: t(`source.${source}`) }))}
          onChange={(source) => change({ source })}
        />
      ) : null}
      {sources.length === 0 ? <p className={css.fact}>{t('form.modelInImage')}</p> : null}
      {sources.includes('folder') && draft.source === 'folder' ? (
        <FolderFields draft={draft} faults={faults} change={change} />
      ) : null}
      {draft.runtime === 'custom' ? <DefinitionField draft={draft} change={change} /> : null}
      {sources.includes('name') && draft.source === 'name' ? (
        <FormField label={t('form.modelName')} hint={t('form.modelNameHint')} fault={faults.model}>
          {(control) => (
            <Input
              {...control}
              className={css.mono ?? ''}
              spellCheck={false}
              placeholder={draft.runtime === 'llamacpp' ? 'ggml-org/gemma-3-4b-it-GGUF' : 'Qwen/Qwen2.5-7B-Instruct'}
              value={draft.model}
              onChange={(event) => change({ model: event.target.value })}
            />
          )}
        </FormField>
      ) : null}
      <FormField label={t('form.served')} note={t('form.optional')} hint={t('form.servedHint')} fault={faults.served}>
        {(control) => (
          <Input
            {...control}
            className={css.mono ?? ''}
            spellCheck={false}
            placeholder={draft.name}
            value={draft.served}
            onChange={(event) => change({ served: event.target.value })}
          />
        )}
      </FormField>
    </FormCard>
  )
}

function FolderFields({ draft, faults, change }: Omit<CardProps, 'deviceMemory'>) {
  const { t } = useTranslation('services')
  const runtime = runtimes[draft.runtime]
  const query = useFolders()
  const folders = (query.data ?? none)
    .filter((f) => f.agent === draft.agent && f.state === 'ready' && !f.auto && !f.missing)
    // Folders for models come first.
    .toSorted((a, b) => Number(b.mode === 'model') - Number(a.mode === 'model') || a.name.localeCompare(b.name))
  const empty = query.data && folders.length === 0
  const custom = draft.runtime === 'custom'
  const file = runtime.path ?? custom
  return (
    <div className={file ? css.two : undefined}>
      <FormField
        label={t('form.folder')}
        note={custom ? t('form.optional') : undefined}
        hint={
          empty ? (
            <>
              {t('form.noFolders')} <Link to="/folders">{t('form.toFolders')}</Link>
            </>
          ) : (
            t(runtime.writes ? 'form.folderHintWrites' : 'form.folderHint', { target: MODEL_TARGET })
          )
        }
        fault={faults.folder}
      >
        {(control) => (
          <Select
            {...control}
            showSearch
            allowClear
            loading={query.isPending}
            placeholder={t('form.folderPlaceholder')}
            value={draft.folder || null}
            options={folders.map((f) => ({ value: f.name, label: f.name }))}
            onChange={(folder: string | null | undefined) => change({ folder: folder ?? '' })}
          />
        )}
      </FormField>
      {file ? (
        <FormField
          label={t(runtime.file ? 'form.file' : 'form.path')}
          note={runtime.file ? undefined : t('form.optional')}
          hint={t(runtime.file ? 'form.fileHint' : custom ? 'definition.pathHint' : 'form.pathHint')}
        >
          {(control) => (
            <Input
              {...control}
              className={css.mono ?? ''}
              spellCheck={false}
              placeholder={runtime.file ?? ''}
              value={draft.path}
              onChange={(event) => change({ path: event.target.value })}
            />
          )}
        </FormField>
      ) : null}
    </div>
  )
}
