import { App, InputNumber, Segmented, Select, Skeleton } from 'antd'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useSaveSettings, useSettings } from '@/api/hooks'
import type { Settings } from '@/api/types.gen'
import { ErrorState } from '@/ui/ErrorState'
import { PageHeader } from '@/ui/PageHeader'
import { About } from './About'
import { Checks } from './Checks'
import css from './settings.module.css'

function Row({ label, text, children }: { label: string; text?: string; children: ReactNode }) {
  return (
    <div className={css.row}>
      <div className={css.words}>
        <div className={css.label}>{label}</div>
        {text ? <div className={css.text}>{text}</div> : null}
      </div>
      {children}
    </div>
  )
}

function Choices({ settings, save }: { settings: Settings; save: (change: Partial<Settings>) => void }) {
  const { t } = useTranslation('settings')
  return (
    <>
      <section className={css.section}>
        <h2>{t('section.appearance')}</h2>
        <div className={css.card}>
          <Row label={t('theme.label')}>
            <Segmented
              aria-label={t('theme.label')}
              value={settings.theme}
              onChange={(theme) => save({ theme })}
              options={(['system', 'light', 'dark'] as const).map((value) => ({ value, label: t(`theme.${value}`) }))}
            />
          </Row>
          <Row label={t('density.label')} text={t('density.text')}>
            <Segmented
              aria-label={t('density.label')}
              value={settings.density}
              onChange={(density) => save({ density })}
              options={(['comfortable', 'compact'] as const).map((value) => ({ value, label: t(`density.${value}`) }))}
            />
          </Row>
          <Row label={t('language.label')}>
            <Select
              aria-label={t('language.label')}
              style={{ width: 140 }}
              value={settings.language}
              onChange={(language) => save({ language })}
              options={[
                { value: 'en', label: 'English' },
                { value: 'ko', label: '한국어' },
              ]}
            />
          </Row>
        </div>
      </section>
      <section className={css.section}>
        <h2>{t('section.terminal')}</h2>
        <div className={css.card}>
          <Row label={t('terminalFont.label')} text={t('terminalFont.text')}>
            <span className={css.preview} style={{ fontSize: settings.terminalFont }} aria-hidden>
              {t('terminalFont.preview')}
            </span>
            <InputNumber
              aria-label={t('terminalFont.label')}
              style={{ width: 72 }}
              min={8}
              max={32}
              precision={0}
              value={settings.terminalFont}
              onChange={(size) => (size ? save({ terminalFont: size }) : undefined)}
            />
          </Row>
        </div>
      </section>
      <section className={css.section}>
        <h2>{t('section.window')}</h2>
        <div className={css.card}>
          <Row label={t('closeKeeps.label')} text={t('closeKeeps.text')}>
            <Segmented
              aria-label={t('closeKeeps.label')}
              value={settings.closeKeeps}
              onChange={(closeKeeps) => save({ closeKeeps })}
              options={(['ask', 'keep', 'quit'] as const).map((value) => ({ value, label: t(`closeKeeps.${value}`) }))}
            />
          </Row>
        </div>
      </section>
    </>
  )
}

/** What a person chooses once, the state of the machine, and what is running. */
export function SettingsPage() {
  const { t } = useTranslation('settings')
  const { message } = App.useApp()
  const settings = useSettings()
  const mutation = useSaveSettings((error) => {
    const problem = asProblem(error)
    void message.error(`${t('failed')}: ${problem.message}`)
  })
  return (
    <div className={css.page}>
      <PageHeader title={t('title')} />
      {settings.data ? (
        <Choices settings={settings.data} save={(change) => settings.data && mutation.mutate({ ...settings.data, ...change })} />
      ) : settings.error ? (
        <ErrorState problem={asProblem(settings.error)} onRetry={() => void settings.refetch()} />
      ) : (
        <Skeleton active />
      )}
      <Checks />
      <About />
    </div>
  )
}
