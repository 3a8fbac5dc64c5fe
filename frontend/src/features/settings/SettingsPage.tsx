import { App, Input, Skeleton } from 'antd'
import { Search, SearchX } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useSaveSettings, useSettings } from '@/api/hooks'
import type { SecretKind, Settings, SettingsFile } from '@/api/types.gen'
import { CopyButton } from '@/ui/CopyButton'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { PageHeader } from '@/ui/PageHeader'
import { About } from './About'
import { Checks } from './Checks'
import { Problems } from './Problems'
import { matching, Row } from './Row'
import { Secrets } from './Secrets'
import css from './settings.module.css'
import { useFileSections, usePersonSections } from './useSections'
import { useSettingsFile } from './useSettingsFile'

interface ChoicesProps {
  settings: Settings
  file: SettingsFile | undefined
  query: string
  /** Something else of the page matches the query. */
  matched: boolean
  onSave: (change: Partial<Settings>) => void
  onChange: (name: string, value: string | null) => void
}

function Choices({ settings, file, query, matched, onSave, onChange }: ChoicesProps) {
  const { t } = useTranslation('settings')
  const byName = new Map(file?.settings.map((s) => [s.name, s]))
  const person = usePersonSections(settings, onSave, (name) => Boolean(byName.get(name)?.override))
  const others = useFileSections(file?.settings ?? [], onChange)
  const sections = matching([...person, ...others], query)
  if (sections.length === 0 && !matched) return <EmptyState icon={SearchX} title={t('noMatch', { query })} />
  return sections.map((section) => (
    <section key={section.title} className={css.section} aria-label={section.title}>
      <h2>{section.title}</h2>
      {section.note ? <p className={css.note}>{section.note}</p> : null}
      <div className={css.card}>
        {section.rows.map((row) => (
          <Row key={row.name} row={row} setting={byName.get(row.name)} />
        ))}
      </div>
    </section>
  ))
}

function FileRow({ path }: { path: string }) {
  const { t } = useTranslation('settings')
  return (
    <div className={css.card}>
      <div className={css.row}>
        <div className={css.words}>
          <div className={css.label}>{t('file.label')}</div>
          <div className={css.text}>{t('file.text')}</div>
          <code className={css.path}>{path}</code>
        </div>
        <CopyButton text={path} label={t('file.copy')} />
      </div>
    </div>
  )
}

/** The kinds of secrets whose texts have every word of a query. */
function useKinds(query: string): SecretKind[] {
  const { t } = useTranslation('secrets')
  return (['variable', 'registry'] as const).filter((kind) => {
    const row = { name: kind, label: t(`${kind}.text`), control: null }
    return matching([{ title: t(`${kind}.title`), rows: [row] }], query).length > 0
  })
}

/** What a person chooses once, the state of the machine, and what is running. */
export function SettingsPage() {
  const { t } = useTranslation('settings')
  const { message } = App.useApp()
  const settings = useSettings()
  const [query, setQuery] = useState('')
  const kinds = useKinds(query)
  const onError = (error: unknown) => {
    const { message: text, hint } = asProblem(error)
    void message.error([`${t('failed')}: ${text}`, hint].filter(Boolean).join(' '))
  }
  const mutation = useSaveSettings(onError)
  const { query: file, change } = useSettingsFile(onError)
  const save = (part: Partial<Settings>) => settings.data && mutation.mutate({ ...settings.data, ...part })
  return (
    <div className={css.page}>
      <PageHeader title={t('title')}>
        <Input
          data-filter
          allowClear
          className={css.search ?? ''}
          prefix={<Search size={14} aria-hidden />}
          aria-label={t('search')}
          placeholder={t('search')}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      </PageHeader>
      {file.data ? <Problems problems={file.data.problems} /> : null}
      {settings.data ? (
        <Choices
          settings={settings.data}
          file={file.data}
          query={query}
          matched={kinds.length > 0}
          onSave={save}
          onChange={change}
        />
      ) : settings.error ? (
        <ErrorState problem={asProblem(settings.error)} onRetry={() => void settings.refetch()} />
      ) : (
        <Skeleton active />
      )}
      {file.error && !file.data ? (
        <ErrorState compact problem={asProblem(file.error)} onRetry={() => void file.refetch()} />
      ) : null}
      {kinds.map((kind) => (
        <Secrets key={kind} kind={kind} />
      ))}
      {query ? null : (
        <>
          {file.data ? <FileRow path={file.data.path} /> : null}
          <Checks />
          <About />
        </>
      )}
    </div>
  )
}
