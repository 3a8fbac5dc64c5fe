import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useMemo } from 'react'
import { call } from '@/api/client'
import { findVersion } from '@/api/environment'
import { useFolders } from '@/api/folders'
import { keys } from '@/api/keys'
import type { FieldProblem, Preview, Spec } from '@/api/types.gen'
import { useNow } from '@/lib/useNow'
import { useSettled } from '@/lib/useSettled'
import { type Draft, toSpec } from './draft'
import { type Issue, mergeIssues, stands } from './issues'
import { useImages } from './useImages'
import { useMachinesFor } from './useMachinesFor'
import { validate } from './validate'
import { advise } from './waits'

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

/** Judges a draft for an owner, who is oneself where empty: by the server, once nothing was entered for a while. */
export function useJudgement(draft: Draft, owner: string, refusal: Refusal | null): Judgement {
  const now = useNow(draft.startAt !== null)
  const { machines, boards } = useMachinesFor(draft.group)
  const families = useImages().environments.data
  const folders = useFolders().data
  const environment = useMemo(() => findVersion(families ?? [], draft.image)?.family, [families, draft.image])
  const spec = useMemo(() => JSON.stringify(toSpec(draft)), [draft])
  const settled = useSettled(spec)
  const person = useSettled(owner)
  const count = draft.count ?? 1
  const preview = useQuery({
    queryKey: keys.preview(settled, person, count),
    queryFn: async ({ signal }) => {
      const asked: Spec = JSON.parse(settled)
      return { ...(await call('preview', { body: asked, query: { owner: person, count }, signal })), asked }
    },
    placeholderData: keepPreviousData,
    refetchInterval: AGAIN,
    staleTime: 1000,
    gcTime: 60_000,
    retry: false,
  })
  const current = spec === settled && owner === person && !preview.isPlaceholderData
  const told = preview.data
  const issues = useMemo(() => {
    const own = [
      ...validate(draft, now),
      ...advise(draft, { machines: machines ?? [], boards: boards ?? [], environment, folders }),
    ]
    const refused = refusal?.spec === spec && !(current && preview.dataUpdatedAt > refusal.at) ? refusal.fields : []
    // What was found stays until the next answer, so that nothing flickers while it is entered.
    const next: Spec = JSON.parse(spec)
    const still = (problem: FieldProblem) => current || (told !== undefined && stands(problem, told.asked, next))
    return mergeIssues(
      own,
      draft,
      [...refused, ...(told?.errors.filter(still) ?? [])],
      (told?.warnings.filter(still) ?? []).filter((w) => !isNoMount(w, draft)),
    )
  }, [draft, now, machines, boards, environment, folders, current, told, preview.dataUpdatedAt, refusal, spec])
  const errors = useMemo(() => issues.filter((issue) => issue.severity === 'error'), [issues])
  return { issues, errors, preview, current, spec }
}

/** That nothing is mounted is said by the launcher itself, where it belongs. */
const isNoMount = (problem: FieldProblem, draft: Draft) => problem.field === 'mounts' && draft.mounts.length === 0
