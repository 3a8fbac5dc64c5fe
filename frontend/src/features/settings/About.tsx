import { type RefObject, useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation } from 'react-router'
import { useMachines, useVersion } from '@/api/hooks'
import { formatBytes } from '@/lib/bytes'
import { docsAddress } from '@/lib/docs'
import { useDoctor } from './Checks'
import { CopyDiagnostics } from './CopyDiagnostics'
import { Updates } from './Updates'
import css from './settings.module.css'

/** Scrolls an element into view when the address leads to it, once the checks above it are there: they take longest. */
function useShown<E extends Element>(name: string): RefObject<E | null> {
  const element = useRef<E>(null)
  const shown = useRef('')
  const { hash, key } = useLocation()
  const settled = useDoctor().isFetched
  useEffect(() => {
    if (hash !== name || !settled || shown.current === key) return
    shown.current = key
    element.current?.scrollIntoView()
  }, [name, hash, key, settled])
  return element
}

export function About() {
  const { t } = useTranslation(['settings', 'common', 'commands'])
  const section = useShown<HTMLElement>('#about')
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
