import { useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation } from 'react-router'
import { useMachines, useVersion } from '@/api/hooks'
import { formatBytes } from '@/lib/bytes'
import { docsAddress } from '@/lib/docs'
import { CopyDiagnostics } from './CopyDiagnostics'
import { Updates } from './Updates'
import css from './settings.module.css'

export function About() {
  const { t } = useTranslation(['settings', 'common', 'commands'])
  const section = useRef<HTMLElement>(null)
  const { hash } = useLocation()
  useEffect(() => {
    if (hash === '#about') section.current?.scrollIntoView()
  }, [hash])
  const version = useVersion().data
  const machine = useMachines().data?.[0]
  const engine = machine ? [t(`common:engine.${machine.engine}`), machine.engineVersion].filter(Boolean).join(' ') : '–'
  const facts = [
    ['version', version?.version],
    ['commit', version?.commit],
    ['go', version?.go],
    ['platform', version ? `${version.os}/${version.arch}` : undefined],
    ['engine', engine],
    [
      'machine',
      machine
        ? [
            machine.hostname,
            machine.os,
            ...(machine.cpus > 0 ? [`${machine.cpus} CPU`, formatBytes(machine.memory)] : []),
          ].join(' · ')
        : undefined,
    ],
  ] as const
  return (
    <section ref={section} className={css.section}>
      <div className={css.sectionHead}>
        <h2>{t('settings:section.about')}</h2>
        <div className={css.aboutTools}>
          <a href={docsAddress} target="_blank" rel="noopener">
            {t('commands:docs')}
          </a>
          <Link to="/licenses">{t('settings:licenses.title')}</Link>
          <Link to="/log">{t('settings:log.open')}</Link>
          <CopyDiagnostics />
        </div>
      </div>
      <dl className={`${css.card} ${css.facts}`}>
        {facts.map(([key, value]) => (
          <div key={key} style={{ display: 'contents' }}>
            <dt>{t(`settings:about.${key}`)}</dt>
            <dd>{value || '–'}</dd>
          </div>
        ))}
      </dl>
      <Updates />
    </section>
  )
}
