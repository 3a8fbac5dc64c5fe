import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { call } from '@/api/client'

import { findVersion } from '@/api/environment'
import { useAgents, useSessionBook } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { FieldProblem, Preview } from '@/api/types.gen'
import { isLive } from '@/lib/status'
import { useNow } from '@/lib/useNow'
import { type Draft, toSpec } from './draft'
import { type Issue, mergeIssues } from './issues'
import { useImages } from './useImages'
import { useMachinesFor } from './useMachinesFor'
import { validate } from './validate'

/** The server is asked when nothing was entered for this long, in milliseconds. */
const SETTLE = 350

/** What happens now changes as sessions come and go: it is asked again this often, in milliseconds. */
const AGAIN = 5_000

/** A refusal of the server, with the spec that it refused. */
export interface Refusal {
  spec: string
  fields: readonly FieldProblem[]
  /** When it was refused, in milliseconds since 1970. What the server finds later counts for more. */
  at: number
}

export interface Judgement {
  issues: Issue[]
  errors: Issue[]
  preview: UseQueryResult<Preview>
  /** The preview is of the draft as it stands. */
  current: boolean
  /** The spec as text, as it would be sent. */
  spec: string
}

/** Judges a draft for an owner, who is oneself where empty, here at once and by the server soon after. */
export function useJudgement(draft: Draft, owner: string, refusal: Refusal | null): Judgement {
  const now = useNow(draft.startAt !== null)
  const { machines, boards } = useMachinesFor(draft.group)
  const sessions = useSessionBook().data
  const liveNames = useMemo(
    () =>
      new Set(
        Object.values(sessions ?? {})
          .filter((s) => isLive(s.status) && (owner === '' || s.owner === owner))
          .map((s) => s.name),
      ),
    [sessions, owner],
  )
  const sessionIds = useMemo(
    () => (sessions ? new Set(Object.values(sessions).flatMap((s) => [s.id, s.name])) : undefined),
    [sessions],
  )
  const agents = useAgents().data
  const families = useImages().environments.data
  const environment = useMemo(() => findVersion(families ?? [], draft.image)?.family, [families, draft.image])
  const groups = useMemo(() => (agents ? new Set(agents.map((a) => a.group)) : undefined), [agents])
  const spec = useMemo(() => JSON.stringify(toSpec(draft)), [draft])
  const settled = useSettled(spec)
  const person = useSettled(owner)
  const preview = useQuery({
    queryKey: keys.preview(settled, person),
    queryFn: ({ signal }) => call('preview', { body: JSON.parse(settled), query: { owner: person }, signal }),
    enabled: toSpec(draft).image !== '',
    placeholderData: keepPreviousData,
    refetchInterval: AGAIN,
    staleTime: 1000,
    gcTime: 60_000,
    retry: false,
  })
  const current = spec === settled && owner === person && !preview.isPlaceholderData
  const issues = useMemo(() => {
    const own = validate(draft, {
      now,
      liveNames,
      machines: machines ?? [],
      boards: boards ?? [],
      ...(sessionIds ? { sessionIds } : {}),
      ...(groups ? { groups } : {}),
      ...(environment ? { environment } : {}),
    })
    const told = current ? preview.data : undefined
    const stands = refusal?.spec === spec && !(told && preview.dataUpdatedAt > refusal.at)
    const refused = stands ? refusal.fields : []
    return mergeIssues(
      own,
      draft,
      [...refused, ...(told?.errors ?? [])],
      (told?.warnings ?? []).filter((w) => !isNoMount(w, draft)),
    )
  }, [
    draft,
    now,
    liveNames,
    machines,
    boards,
    sessionIds,
    groups,
    environment,
    current,
    preview.data,
    preview.dataUpdatedAt,
    refusal,
    spec,
  ])
  const errors = useMemo(() => issues.filter((issue) => issue.severity === 'error'), [issues])
  return { issues, errors, preview, current, spec }
}

/** That nothing is mounted is said by the launcher itself, where it belongs. */
const isNoMount = (problem: FieldProblem, draft: Draft) => problem.field === 'mounts' && draft.mounts.length === 0

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLE)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
