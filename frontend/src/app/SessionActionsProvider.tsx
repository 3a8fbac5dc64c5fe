import { useQueryClient } from '@tanstack/react-query'
import { App } from 'antd'
import { Suspense, useCallback, useMemo, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate, useSearchParams } from 'react-router'
import { applyAnswer } from '@/api/book'

import { asProblem, call } from '@/api/client'
import type { Session } from '@/api/types.gen'
import { EndingToast } from '@/features/session/EndingToast'
import { SessionActionsContext, type SessionActions } from '@/lib/actions'
import { part } from '@/lib/lazily'
import { now } from '@/lib/now'
import type { RecipeSource } from '@/lib/recipe'
import { formatMoment } from '@/lib/time'

const AppsModal = part(() => import('@/features/apps/AppsModal'), 'AppsModal')
const MoveDialog = part(() => import('@/features/session/MoveDialog'), 'MoveDialog')
const CommitDialog = part(() => import('@/features/session/CommitDialog'), 'CommitDialog')
const SSHModal = part(() => import('@/features/apps/SSHModal'), 'SSHModal')
const SessionFiles = part(() => import('./SessionFiles'), 'SessionFiles')
const CompareModal = part(() => import('@/features/recipes/CompareModal'), 'CompareModal')
const RecipeModal = part(() => import('@/features/recipes/RecipeModal'), 'RecipeModal')
const TerminateDialog = part(() => import('@/features/session/TerminateDialog'), 'TerminateDialog')

/** Does something to each of several sessions: shows what was stored, and says which could not be changed. */
function useChangeAll() {
  const { t } = useTranslation()
  const { message } = App.useApp()
  const client = useQueryClient()
  return useCallback(
    async (ids: string[], change: (id: string) => Promise<Session>, done: string) => {
      const results = await Promise.allSettled(ids.map(change))
      const failures: string[] = []
      for (const result of results) {
        if (result.status === 'fulfilled') applyAnswer(client, result.value)
        else failures.push([asProblem(result.reason).message, asProblem(result.reason).hint].filter(Boolean).join(' '))
      }
      if (failures.length > 0)
        void message.error(
          failures.length === 1 ? failures[0] : t('changes.failed', { count: failures.length, why: failures[0] }),
        )
      else void message.success(done)
    },
    [client, message, t],
  )
}

/**
 * Joins features that do not know one another: a row of the list opens the app
 * launcher, a notification opens a terminal. The app launcher is part of the
 * address (?apps=ID), so it survives a reload and can be linked to.
 */
export function SessionActionsProvider({ children }: { children: ReactNode }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const changeAll = useChangeAll()
  const [params, setParams] = useSearchParams()
  const [ending, setEnding] = useState<{ ids: string[]; forced: boolean } | null>(null)
  const [committing, setCommitting] = useState<string | null>(null)
  const [moving, setMoving] = useState<string | null>(null)
  const [files, setFiles] = useState<string | null>(null)
  const [ssh, setSSH] = useState<string | null>(null)
  const [recipe, setRecipe] = useState<RecipeSource | null>(null)
  const [compared, setCompared] = useState<{ first: RecipeSource | null } | null>(null)
  const appsOf = params.get('apps')

  const setApps = useCallback(
    (id: string | null) =>
      setParams(
        (old) => {
          const next = new URLSearchParams(old)
          if (id) next.set('apps', id)
          else next.delete('apps')
          return next
        },
        { replace: id === null },
      ),
    [setParams],
  )
  const actions = useMemo<SessionActions>(
    () => ({
      showDetail: (id) =>
        void navigate(`/sessions/${id}${location.pathname.startsWith('/sessions') ? location.search : ''}`),
      showLogs: (id, kernel) =>
        void navigate(
          `/sessions/${id}?${new URLSearchParams({ view: 'logs', ...(kernel ? { kernel } : {}) }).toString()}`,
        ),
      openTerminal: (id, kernel) =>
        void navigate(`/sessions/${id}/terminal${kernel ? `?kernel=${encodeURIComponent(kernel)}` : ''}`),
      openApps: (id) => setApps(id),
      openFiles: setFiles,
      openSSH: setSSH,
      showRecipe: setRecipe,
      compareRecipes: (first) => setCompared({ first }),
      commit: setCommitting,
      move: setMoving,
      terminate: (ids, forced = false) => setEnding({ ids, forced }),
      park: (ids) =>
        void changeAll(ids, (id) => call('park', { path: { id } }), t('changes.parked', { count: ids.length })),
      resume: (id) => void changeAll([id], () => call('continue', { path: { id } }), t('changes.resumed')),
      terminateNow: (ids) =>
        void changeAll(
          ids,
          (id) => call('terminate', { path: { id }, body: {} }),
          t('ending.ended', { count: ids.length }),
        ),
      undoTerminate: (ids) =>
        void changeAll(
          ids,
          (id) => call('terminate-undo', { path: { id } }),
          t('ending.undone', { count: ids.length }),
        ),
      keep: (ids, hours) =>
        void changeAll(
          ids,
          (id) => call('keep', { path: { id }, body: { for: `${Math.ceil(hours * 3600)}s` } }),
          Number.isInteger(hours)
            ? t('changes.kept', { count: hours })
            : t('changes.keptUntil', { when: formatMoment(now() + hours * 3_600_000) }),
        ),
      setTags: (sessions, add, remove) => {
        const tagsOf = new Map(
          sessions.map((s) => [s.id, [...new Set([...s.tags, ...add])].filter((tag) => !remove.includes(tag))]),
        )
        void changeAll(
          [...tagsOf.keys()],
          (id) => call('session-update', { path: { id }, body: { tags: tagsOf.get(id) ?? [] } }),
          t('changes.tagged', { count: tagsOf.size }),
        )
      },
      setPriority: (ids, priority) =>
        void changeAll(
          ids,
          (id) => call('session-update', { path: { id }, body: { priority } }),
          t('changes.priority', { priority }),
        ),
    }),
    [navigate, setApps, changeAll, t],
  )
  const compare = (first: RecipeSource) => {
    setRecipe(null)
    setCompared({ first })
  }
  return (
    <SessionActionsContext value={actions}>
      {children}
      <EndingToast />
      <Suspense fallback={null}>
        {appsOf ? <AppsModal sessionId={appsOf} onClose={() => setApps(null)} /> : null}
        {ssh ? <SSHModal key={ssh} sessionId={ssh} onClose={() => setSSH(null)} /> : null}
        {files ? <SessionFiles key={files} id={files} onClose={() => setFiles(null)} /> : null}
        {recipe ? <RecipeModal source={recipe} onClose={() => setRecipe(null)} onCompare={compare} /> : null}
        {compared ? <CompareModal first={compared.first} onClose={() => setCompared(null)} /> : null}
        {moving ? <MoveDialog key={moving} id={moving} onClose={() => setMoving(null)} /> : null}
        {committing ? <CommitDialog key={committing} id={committing} onClose={() => setCommitting(null)} /> : null}
        {ending ? <TerminateDialog ids={ending.ids} forced={ending.forced} onClose={() => setEnding(null)} /> : null}
      </Suspense>
    </SessionActionsContext>
  )
}
