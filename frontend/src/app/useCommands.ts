import {
  Bell,
  BookOpen,
  CirclePower,
  Compass,
  FolderOpen,
  History,
  Keyboard,
  Languages,
  LayoutGrid,
  MessageSquare,
  Monitor,
  Moon,
  Rocket,
  Rows3,
  Rows4,
  ScrollText,
  Server,
  SquareStack,
  SquareTerminal,
  Sun,
} from 'lucide-react'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { useFolders } from '@/api/folders'
import { useAgents, useRecents, useSaveSettings, useSessionBook, useSettings } from '@/api/hooks'
import { useProjects } from '@/api/projects'
import type { Session, Settings } from '@/api/types.gen'
import type { Command } from '@/features/commands/command'
import { useSessionActions, type SessionActions } from '@/lib/actions'
import { isLive } from '@/lib/status'
import { docsAddress } from '@/lib/docs'
import { projectAddress } from '@/lib/project'
import { recentAddress } from './addresses'
import { sections } from './sections'

/** What lies over the page and is opened by a command. */
export type Over = 'notices' | 'recents' | 'palette' | 'keys' | 'tour'

/** How many sessions are offered before something is typed. */
const offered = 5

type Translate = ReturnType<typeof useTranslation<['commands', 'common']>>['t']

function sessionCommands(session: Session, first: boolean, t: Translate, actions: SessionActions): Command[] {
  const { id, name, status } = session
  const common = { group: t('commands:group.sessions'), words: `${session.spec.image} ${id}`, onlyFound: true }
  const all: Command[] = [
    {
      ...common,
      id: `show-${id}`,
      label: t('commands:show', { name }),
      note: t(`common:status.${status}`),
      icon: SquareStack,
      onlyFound: !first,
      run: () => actions.showDetail(id),
    },
  ]
  if (status === 'RUNNING') {
    all.push({
      ...common,
      id: `terminal-${id}`,
      label: t('commands:terminal', { name }),
      icon: SquareTerminal,
      run: () => actions.openTerminal(id),
    })
    all.push({
      ...common,
      id: `apps-${id}`,
      label: t('commands:apps', { name }),
      icon: LayoutGrid,
      run: () => actions.openApps(id),
    })
    all.push({
      ...common,
      id: `files-${id}`,
      label: t('commands:files', { name }),
      icon: FolderOpen,
      run: () => actions.openFiles(id),
    })
  }
  if (session.startedAt)
    all.push({
      ...common,
      id: `logs-${id}`,
      label: t('commands:logs', { name }),
      icon: ScrollText,
      run: () => actions.showLogs(id),
    })
  if (isLive(status))
    all.push({
      ...common,
      id: `terminate-${id}`,
      label: t('commands:terminate', { name }),
      icon: CirclePower,
      run: () => actions.terminate([id]),
    })
  return all
}

function settingCommands(settings: Settings, save: (settings: Settings) => void, t: Translate): Command[] {
  const set = (id: string, label: string, icon: Command['icon'], change: Partial<Settings>): Command => ({
    id,
    label,
    icon,
    group: t('commands:group.actions'),
    onlyFound: true,
    run: () => save({ ...settings, ...change }),
  })
  const all = [
    set('light', t('commands:light'), Sun, { theme: 'light' }),
    set('dark', t('commands:dark'), Moon, { theme: 'dark' }),
    set('system', t('commands:systemTheme'), Monitor, { theme: 'system' }),
    set('compact', t('commands:compact'), Rows4, { density: 'compact' }),
    set('comfortable', t('commands:comfortable'), Rows3, { density: 'comfortable' }),
  ]
  const inForce = new Set<string>([settings.theme, settings.density])
  return [
    ...all.filter((c) => !inForce.has(c.id)),
    set('language', t('commands:language'), Languages, { language: settings.language === 'ko' ? 'en' : 'ko' }),
  ]
}

/** Everything that the palette offers now. */
export function useCommands(onShow: (over: Over) => void, mac: boolean): Command[] {
  const { t } = useTranslation(['commands', 'common'])
  const navigate = useNavigate()
  const actions = useSessionActions()
  const sessions = useSessionBook().data
  const recents = useRecents().data
  const projects = useProjects().data
  const folders = useFolders().data
  const agents = useAgents().data
  const settings = useSettings().data
  const { mutate: save } = useSaveSettings()
  return useMemo(() => {
    const main = mac ? '⌘' : 'Ctrl'
    const go = (to: string) => () => void navigate(to)
    const action = (id: string, label: string, icon: Command['icon'], run: () => void, shortcut?: string): Command => ({
      id,
      label,
      icon,
      run,
      group: t('commands:group.actions'),
      ...(shortcut ? { shortcut } : {}),
    })
    const live = Object.values(sessions ?? {}).sort(
      (a, b) => Number(isLive(b.status)) - Number(isLive(a.status)) || b.createdAt.localeCompare(a.createdAt),
    )
    return [
      action('new', t('common:header.launch'), Rocket, go('/launcher'), `${main}+N`),
      ...live.flatMap((session, i) => sessionCommands(session, i < offered && isLive(session.status), t, actions)),
      ...sections.map(({ name, to, icon }, i): Command => ({
        id: name,
        group: t('commands:group.go'),
        label: t(`common:nav.${name}`),
        icon,
        shortcut: `${main}+${i + 1}`,
        run: go(to),
      })),
      action('playground', t('commands:playground'), MessageSquare, go('/playground')),
      action('notices', t('commands:notices'), Bell, () => onShow('notices')),
      action('recents', t('commands:recents'), History, () => onShow('recents')),
      action('log', t('commands:log'), ScrollText, go('/log')),
      action('docs', t('commands:docs'), BookOpen, () => window.open(docsAddress, '_blank', 'noopener')),
      action('keys', t('commands:help'), Keyboard, () => onShow('keys'), '?'),
      action('tour', t('commands:tour'), Compass, () => onShow('tour')),
      ...(settings ? settingCommands(settings, save, t) : []),
      ...(recents ?? []).map((r): Command => ({
        id: `recent-${r.id}`,
        group: t('commands:group.recents'),
        label: t('commands:launchAgain', { name: r.name }),
        words: r.spec.image,
        icon: History,
        onlyFound: true,
        run: go(recentAddress(r.id)),
      })),
      ...(projects ?? []).map((p): Command => ({
        id: `project-${p.id}`,
        group: t('commands:group.projects'),
        label: t('commands:project', { name: p.name }),
        note: p.agent,
        icon: Rocket,
        onlyFound: true,
        run: go(projectAddress(p.id)),
      })),
      ...(folders ?? [])
        .filter((f) => f.state === 'ready')
        .map((f): Command => ({
          id: `folder-${f.id}`,
          group: t('commands:group.folders'),
          label: t('commands:folder', { name: f.name }),
          icon: FolderOpen,
          onlyFound: true,
          run: go(`/folders/${f.id}`),
        })),
      ...(agents ?? []).map((a): Command => ({
        id: `agent-${a.name}`,
        group: t('commands:group.agents'),
        label: t('commands:agent', { name: a.name }),
        icon: Server,
        onlyFound: true,
        run: go(`/agents/${encodeURIComponent(a.name)}`),
      })),
    ]
  }, [t, mac, navigate, actions, sessions, recents, projects, folders, agents, settings, save, onShow])
}
