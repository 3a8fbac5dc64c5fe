import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Service } from '@/api/types.gen'
import { CopyButton } from '@/ui/CopyButton'
import { Tabs } from '@/ui/Tabs'
import { Copied } from './Copied'
import css from './services.module.css'
import { type Client, clients, continueConfig, PLACEHOLDER, snippet } from './snippets'

/** The same request from the programs that people use. */
export function Snippets({ service, model }: { service: Service; model: string }) {
  const { t } = useTranslation('services')
  const [client, setClient] = useState<Client>('curl')
  const endpoint = { address: service.address, model, open: service.public ?? false }
  return (
    <section aria-label={t('snippet.title')}>
      <div className={css.sectionHead}>
        <h3>{t('snippet.title')}</h3>
        <Tabs
          label={t('snippet.title')}
          tabs={clients.map((key) => ({ key, label: t(`snippet.${key}`) }))}
          value={client}
          onChange={setClient}
        />
      </div>
      {client === 'editor' ? (
        <Editors {...endpoint} />
      ) : (
        <div className={css.codeBox}>
          <pre className={css.code} tabIndex={0} aria-label={t(`snippet.${client}`)}>
            {snippet(client, endpoint)}
          </pre>
          <CopyButton text={snippet(client, endpoint)} label={t('snippet.copy', { client: t(`snippet.${client}`) })} />
        </div>
      )}
      {endpoint.open ? null : <p className={css.small}>{t('snippet.placeholder', { placeholder: PLACEHOLDER })}</p>}
    </section>
  )
}

function Editors({ address, model, open }: { address: string; model: string; open: boolean }) {
  const { t } = useTranslation('services')
  const config = continueConfig({ address, model, open })
  return (
    <>
      <p className={css.small}>{t('editor.text')}</p>
      <dl className={css.facts}>
        <dt>{t('editor.provider')}</dt>
        <dd>{t('editor.compatible')}</dd>
        <dt>{t('editor.base')}</dt>
        <dd>
          <Copied text={address} label={t('snippet.copy', { client: t('editor.base') })} />
        </dd>
        <dt>{t('editor.key')}</dt>
        <dd>
          <code>{open ? t('editor.anyKey') : PLACEHOLDER}</code>
        </dd>
        <dt>{t('editor.model')}</dt>
        <dd>
          <Copied text={model} label={t('copyModel', { model })} />
        </dd>
      </dl>
      <p className={css.small}>{t('editor.continue')}</p>
      <div className={css.codeBox}>
        <pre className={css.code} tabIndex={0} aria-label={t('editor.config')}>
          {config}
        </pre>
        <CopyButton text={config} label={t('snippet.copy', { client: t('editor.config') })} />
      </div>
    </>
  )
}
