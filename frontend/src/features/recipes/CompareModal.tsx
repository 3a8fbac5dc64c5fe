import { useQueries, useQuery } from '@tanstack/react-query'
import { Select, Skeleton, Switch } from 'antd'
import { GitCompareArrows } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { fetchRecipe } from '@/api/recipes'
import { asProblem, call } from '@/api/client'
import { useRecents, useSessionBook } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { RecipeField, Spec } from '@/api/types.gen'
import type { RecipeSource } from '@/lib/recipe'
import { Dialog } from '@/ui/Dialog'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { OpenRecipe } from './OpenRecipe'
import css from './recipes.module.css'
import type { RecipeFile } from './useRecipeFile'

/** One of the two: where it comes from, or the file that was read. */
type Side = RecipeSource | RecipeFile | null

const isFile = (side: Side): side is RecipeFile => side !== null && 'spec' in side
const valueOf = (side: Side) =>
  side === null ? undefined : isFile(side) ? `file:${side.name}` : `${side.kind}:${side.id}`

/** Everything that can be compared without a file, the newest first. */
function useChoices() {
  const { t } = useTranslation('recipes')
  const recents = useRecents().data ?? []
  const sessions = Object.values(useSessionBook().data ?? {}).sort((a, b) => b.createdAt.localeCompare(a.createdAt))
  return [
    { label: t('side.recents'), options: recents.map((r) => ({ value: `recent:${r.id}`, label: r.name })) },
    {
      label: t('side.sessions'),
      options: sessions.slice(0, 100).map((s) => ({ value: `session:${s.id}`, label: s.name })),
    },
  ].filter((group) => group.options.length > 0)
}

function SidePicker({ side, label, onChange }: { side: Side; label: string; onChange: (side: Side) => void }) {
  const { t } = useTranslation('recipes')
  const choices = useChoices()
  const file = isFile(side)
    ? [{ label: t('side.file'), options: [{ value: `file:${side.name}`, label: side.name }] }]
    : []
  const choose = (value: string) => {
    const [kind, ...id] = value.split(':')
    if (kind === 'session' || kind === 'recent') onChange({ kind, id: id.join(':') })
  }
  return (
    <div className={css.side}>
      <Select<string>
        showSearch={{ optionFilterProp: 'label' }}
        aria-label={label}
        placeholder={t('side.choose')}
        value={valueOf(side)}
        onChange={choose}
        options={[...file, ...choices]}
      />
      <OpenRecipe label={t('side.open')} onRead={onChange} />
    </div>
  )
}

function Rows({ fields, names }: { fields: RecipeField[]; names: readonly [string, string] }) {
  const { t } = useTranslation('recipes')
  const cell = (text: string) => (text === '' ? <span className={css.none}>–</span> : text)
  return (
    <div className={css.scroll} tabIndex={0} role="region" aria-label={t('compareTitle')}>
      <table className={css.table}>
        <thead>
          <tr>
            <th scope="col">{t('field')}</th>
            <th scope="col">{names[0]}</th>
            <th scope="col">{names[1]}</th>
          </tr>
        </thead>
        <tbody>
          {fields.map((row) => (
            <tr key={row.field} className={row.same ? undefined : css.differs}>
              <th scope="row" className={css.field}>
                {row.field}
                {row.same ? null : <span className="unseen"> {t('differs')}</span>}
              </th>
              <td>{cell(row.left)}</td>
              <td>{cell(row.right)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** What a side asks for: as its file says, or as the server tells. */
function useSides(sides: readonly [Side, Side]) {
  return useQueries({
    queries: sides.map((side) => ({
      queryKey: isFile(side)
        ? (['recipe-file', side.name, side.spec] as const)
        : keys.recipe(side ?? { kind: 'recent', id: '' }),
      queryFn: async ({ signal }: { signal: AbortSignal }): Promise<{ name: string; spec: Spec }> =>
        isFile(side) ? side : fetchRecipe(side ?? { kind: 'recent', id: '' }, signal),
      enabled: side !== null,
    })),
  })
}

/** Two recipes side by side, field by field. */
export function CompareModal({ first, onClose }: { first: RecipeSource | null; onClose: () => void }) {
  const { t } = useTranslation('recipes')
  const [left, setLeft] = useState<Side>(first)
  const [right, setRight] = useState<Side>(null)
  const [all, setAll] = useState(false)
  const [a, b] = useSides([left, right])
  const specs = a?.data && b?.data ? { left: a.data.spec, right: b.data.spec } : null
  const result = useQuery({
    queryKey: ['recipe-compare', specs],
    queryFn: ({ signal }) =>
      call('recipe-compare', {
        body: specs ?? { left: { image: '', resources: {} }, right: { image: '', resources: {} } },
        signal,
      }),
    enabled: specs !== null,
  })
  const error = a?.error ?? b?.error ?? result.error
  const fields = result.data ?? []
  const differing = fields.filter((f) => !f.same)
  return (
    <Dialog width={960} footer={null} title={t('compareTitle')} onCancel={onClose}>
      <div className={css.sides}>
        <SidePicker side={left} label={t('side.left')} onChange={setLeft} />
        <SidePicker side={right} label={t('side.right')} onChange={setRight} />
      </div>
      {error ? (
        <ErrorState
          compact
          problem={asProblem(error)}
          onRetry={() => void Promise.all([a?.refetch(), b?.refetch(), result.refetch()])}
        />
      ) : left === null || right === null ? (
        <EmptyState icon={GitCompareArrows} title={t('compareEmpty')} text={t('compareEmptyText')} />
      ) : !result.data ? (
        <Skeleton active paragraph={{ rows: 6 }} />
      ) : (
        <>
          <div className={css.bar}>
            <label>
              <Switch size="small" checked={all} onChange={setAll} /> {t('showAll')}
            </label>
            <span className={css.count}>{t('differences', { count: differing.length })}</span>
          </div>
          {(all ? fields : differing).length === 0 ? (
            <EmptyState icon={GitCompareArrows} title={t('noDifference')} />
          ) : (
            <Rows fields={all ? fields : differing} names={[a?.data?.name ?? '', b?.data?.name ?? '']} />
          )}
        </>
      )}
    </Dialog>
  )
}
