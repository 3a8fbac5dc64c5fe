import { ChartColumn, CircuitBoard, FolderOpen, Rocket, Server, Settings2, SquareStack, type LucideIcon } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link, NavLink } from 'react-router'
import { useSessionBook, useVersion } from '@/api/hooks'
import { isLive } from '@/lib/status'
import css from './Shell.module.css'

function RailLink({ to, icon: Icon, label, count }: { to: string; icon: LucideIcon; label: string; count?: number }) {
  return (
    <NavLink to={to} className={({ isActive }) => `${css.link} ${isActive ? css.active : ''}`} title={label}>
      <Icon size={16} strokeWidth={2} aria-hidden />
      <span className={css.label}>{label}</span>
      {count ? <span className={css.count}>{count}</span> : null}
    </NavLink>
  )
}

export function Rail() {
  const { t } = useTranslation()
  const version = useVersion().data
  const sessions = useSessionBook().data
  const live = sessions ? Object.values(sessions).filter((s) => isLive(s.status)).length : 0
  return (
    <aside className={css.rail} aria-label={t('app.name')}>
      <Link to="/sessions" className={css.brand}>
        <img src="/icon.svg" width={22} height={22} alt="" />
        <span className={css.wordmark}>{t('app.name')}</span>
      </Link>
      <nav className={css.nav} aria-label={t('nav.label')}>
        <RailLink to="/sessions" icon={SquareStack} label={t('nav.sessions')} count={live} />
        <RailLink to="/launcher" icon={Rocket} label={t('nav.launcher')} />
        <RailLink to="/folders" icon={FolderOpen} label={t('nav.folders')} />
        <RailLink to="/gpus" icon={CircuitBoard} label={t('nav.gpus')} />
        <RailLink to="/usage" icon={ChartColumn} label={t('nav.usage')} />
        <RailLink to="/agents" icon={Server} label={t('nav.agents')} />
      </nav>
      <div className={css.foot}>
        <RailLink to="/settings" icon={Settings2} label={t('nav.settings')} />
        <div className={css.version}>{version ? `${t('app.name')} ${version.version}` : ' '}</div>
      </div>
    </aside>
  )
}
