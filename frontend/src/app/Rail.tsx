import { useTranslation } from 'react-i18next'
import { Link, NavLink, useLocation } from 'react-router'
import { useSessionBook, useUpdates, useVersion } from '@/api/hooks'
import { isLive } from '@/lib/status'
import { sections, type Section } from './sections'
import css from './Shell.module.css'

function RailLink({ section: { name, to, icon: Icon, also }, count }: { section: Section; count?: number }) {
  const { t } = useTranslation()
  const within = useLocation().pathname === also
  const label = t(`nav.${name}`)
  return (
    <NavLink to={to} className={({ isActive }) => `${css.link} ${isActive || within ? css.active : ''}`} title={label}>
      <Icon size={16} strokeWidth={2} aria-hidden />
      <span className={css.label}>{label}</span>
      {count ? <span className={css.count}>{count}</span> : null}
    </NavLink>
  )
}

export function Rail() {
  const { t } = useTranslation()
  const version = useVersion().data
  const newer = useUpdates().data?.newer
  const sessions = useSessionBook().data
  const live = sessions ? Object.values(sessions).filter((s) => isLive(s.status)).length : 0
  return (
    <aside className={css.rail} aria-label={t('app.name')}>
      <Link to="/sessions" className={css.brand}>
        <img src="/icon.svg" width={22} height={22} alt="" />
        <span className={css.wordmark}>{t('app.name')}</span>
      </Link>
      <nav className={css.nav} aria-label={t('nav.label')}>
        {sections.map((section) =>
          section.name === 'settings' ? null : (
            <RailLink key={section.name} section={section} count={section.name === 'sessions' ? live : 0} />
          ),
        )}
      </nav>
      <div className={css.foot}>
        {sections.map((section) =>
          section.name === 'settings' ? <RailLink key={section.name} section={section} /> : null,
        )}
        <div className={css.version}>
          {newer ? (
            <Link to="/settings#about">{t('app.update', { version: newer.version })}</Link>
          ) : version ? (
            `${t('app.name')} ${version.version}`
          ) : (
            ' '
          )}
        </div>
      </div>
    </aside>
  )
}
