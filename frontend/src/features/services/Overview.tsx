import { Button } from 'antd'
import { Globe, KeyRound } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { Service } from '@/api/types.gen'
import { formatCount, formatFirstWord, formatValue } from '@/lib/figures'
import { RelativeTime } from '@/ui/Times'
import { Copied } from './Copied'
import { OtherAddresses } from './OtherAddresses'
import css from './services.module.css'
import { Snippets } from './Snippets'
import { healthyOf, modelNames, wantedOf } from './states'

/** What a service does now, and how programs use it. */
export function Overview({ service, onTokens }: { service: Service; onTokens: () => void }) {
  const { t } = useTranslation('services')
  const models = modelNames(service)
  const base = service.address.replace(/\/v1$/, '')
  return (
    <div className={css.parts}>
      <Figures service={service} />
      {service.public ? (
        <p className={css.notice}>
          <Globe size={15} aria-hidden />
          <span>
            <b>{t('public.title')}</b> {t('public.text')}
          </span>
        </p>
      ) : service.tokens.length === 0 ? (
        <div className={css.hintBox}>
          <KeyRound size={15} aria-hidden />
          <span>{t('noTokens')}</span>
          <Button size="small" onClick={onTokens}>
            {t('token.new')}
          </Button>
        </div>
      ) : null}
      <section aria-label={t('endpoint.title')}>
        <h3>{t('endpoint.title')}</h3>
        <dl className={css.facts}>
          <Fact label={t('endpoint.address')}>
            {service.address ? <Copied text={service.address} label={t('copyAddress', { name: service.name })} /> : '–'}
          </Fact>
          <Fact label={t('endpoint.models', { count: models.length })}>
            {models.map((model) => (
              <Copied key={model} text={model} label={t('copyModel', { model })} />
            ))}
          </Fact>
          {service.address ? (
            <Fact label={t('endpoint.other')}>
              <Copied text={`${base}/services/${service.name}/`} label={t('copyOther')} />
            </Fact>
          ) : null}
          <OtherAddresses service={service} />
        </dl>
      </section>
      {service.address ? <Snippets service={service} model={models[0] ?? service.name} /> : null}
    </div>
  )
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </>
  )
}

function Figures({ service }: { service: Service }) {
  const { t } = useTranslation('services')
  const { traffic } = service
  const tiles: [string, string, ReactNode][] = [
    [
      t('figure.replicas'),
      t('healthyOf', { healthy: healthyOf(service), count: wantedOf(service) }),
      t('figure.healthy'),
    ],
    [
      t('figure.requests'),
      formatCount(traffic.requests),
      traffic.failed > 0 ? (
        <span className={css.bad}>{t('figure.failed', { count: traffic.failed })}</span>
      ) : traffic.last ? (
        <RelativeTime at={traffic.last} short />
      ) : (
        t('figure.never')
      ),
    ],
    [
      t('figure.tokens'),
      formatCount(traffic.completionTokens),
      t('figure.rate', { tokens: formatCount(traffic.promptTokens), rate: formatValue(traffic.tokensPerSecond) }),
    ],
    [
      t('figure.first'),
      formatFirstWord(traffic.firstWordMs),
      traffic.firstWordMs > 0
        ? t('figure.median', { most: formatFirstWord(traffic.firstWordP99Ms) })
        : t('figure.never'),
    ],
    [t('figure.now'), formatCount(traffic.outstanding), t('figure.waiting', { count: traffic.waiting })],
  ]
  return (
    <div className={css.figures} role="group" aria-label={t('figure.title')}>
      {tiles.map(([name, value, note]) => (
        <div key={name} className={css.figure}>
          <div className={css.figureName}>{name}</div>
          <div className={`${css.figureValue} num`}>{value}</div>
          <div className={css.figureNote}>{note}</div>
        </div>
      ))}
    </div>
  )
}
