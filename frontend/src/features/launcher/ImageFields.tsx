import { Alert, AutoComplete, Segmented, Select, Tag } from 'antd'
import { CircleCheck, CloudDownload } from 'lucide-react'
import { useCallback } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import type { Environment, Image } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { findVersion } from '@/api/environment'
import { ErrorState } from '@/ui/ErrorState'
import css from './launcher.module.css'
import { Card } from './Card'
import { Field } from './Field'
import { hueOf, imagesOn, type ImageState, imageState, monogram } from './images'
import { SendImage } from './SendImage'
import type { StepProps } from './StepProps'
import { useEnvironmentFile, useImages } from './useImages'
import { useNeeds } from './useNeeds'
import { useSeeded } from './useSeeded'

const none: never[] = []

export function ImageFields({ draft, issues, change }: StepProps) {
  const { t } = useTranslation('launcher')
  const { environments, images } = useImages()
  const broken = useEnvironmentFile().data?.problem
  const families = environments.data ?? none
  const local = images.data ?? none
  const mode = (
    <Segmented
      size="small"
      aria-label={t('image.how')}
      value={draft.manual ? 'manual' : 'choose'}
      options={[
        { value: 'choose', label: t('image.choose') },
        { value: 'manual', label: t('image.byHand') },
      ]}
      onChange={(value) => change({ manual: value === 'manual' })}
    />
  )
  return (
    <Card title={t('image.title')} aside={mode}>
      {environments.isError ? (
        <ErrorState compact problem={asProblem(environments.error)} onRetry={() => void environments.refetch()} />
      ) : null}
      {broken ? <Alert type="warning" showIcon title={broken.message} description={broken.hint} /> : null}
      {draft.manual ? (
        <ByHand draft={draft} issues={issues} change={change} families={families} local={local} />
      ) : (
        <Choose
          draft={draft}
          issues={issues}
          change={change}
          families={families}
          local={local}
          loading={environments.isPending}
        />
      )}
    </Card>
  )
}

type ImageProps = StepProps & { families: readonly Environment[]; local: readonly Image[]; loading?: boolean }

function Choose({ draft, issues, change, families, local, loading }: ImageProps) {
  const { t } = useTranslation('launcher')
  const needs = useNeeds()
  const seeded = useSeeded()
  const found = findVersion(families, draft.image)
  const strange = !found && draft.image !== '' && !loading
  return (
    <>
      <div className={css.two}>
        <Field
          label={t('image.environment')}
          hint={
            found
              ? [seeded('environment', found.family.id, found.family.summary), needs(found.family)]
                  .filter(Boolean)
                  .join(' ')
              : undefined
          }
        >
          {(control) => (
            <Select
              id={control.id}
              loading={loading ?? false}
              showSearch={{ optionFilterProp: 'title' }}
              value={found?.family.id ?? null}
              placeholder={t('image.environmentPlaceholder')}
              options={families.map((family) => ({
                value: family.id,
                title: family.title,
                label: <FamilyName family={family} />,
              }))}
              onChange={(id) => {
                const family = families.find((f) => f.id === id)
                const version = family?.versions.find((v) => v.installed) ?? family?.versions[0]
                if (version) change({ image: version.image })
              }}
            />
          )}
        </Field>
        <Field
          label={t('image.version')}
          hint={found ? <code>{found.version.image}</code> : undefined}
          issue={found || loading ? issues.at('image') : undefined}
        >
          {(control) => (
            <Select
              {...control}
              disabled={!found}
              value={found?.version.image ?? null}
              placeholder={t('image.versionPlaceholder')}
              options={(found?.family.versions ?? []).map((version) => ({
                value: version.image,
                label: (
                  <span className={css.option}>
                    <span className={css.optionName}>{version.title}</span>
                    {version.custom ? (
                      <Tag variant="filled" color="blue" style={{ margin: 0 }}>
                        {t('image.customized')}
                      </Tag>
                    ) : null}
                    <ImageBadge state={{ installed: version.installed, size: version.size }} />
                  </span>
                ),
              }))}
              onChange={(image) => change({ image })}
            />
          )}
        </Field>
      </div>
      {strange ? (
        <Field label={t('image.image')} issue={issues.at('image')} hint={t('image.notOffered')}>
          {() => <code className={css.strange}>{draft.image}</code>}
        </Field>
      ) : null}
      {found ? (
        <ImageLine
          state={imageState(draft.image, families, imagesOn(local, draft.agent), draft.agent)}
          quiet
          draft={draft}
          local={local}
          change={change}
        />
      ) : null}
    </>
  )
}

function ByHand({ draft, issues, change, families, local }: ImageProps) {
  const { t } = useTranslation('launcher')
  const wanted = draft.image.trim().toLowerCase()
  const references = local.flatMap((image) =>
    image.refs.filter((ref) => !ref.includes('@') && !ref.includes('<none>')).map((ref) => ({ ref, size: image.size })),
  )
  const options = references
    .filter(({ ref }) => ref.toLowerCase().includes(wanted))
    .slice(0, 50)
    .map(({ ref, size }) => ({
      value: ref,
      label: (
        <span className={css.option}>
          <code className={css.optionName}>{ref}</code>
          <ImageBadge state={{ installed: true, size }} />
        </span>
      ),
    }))
  const issue = issues.at('image')
  return (
    <>
      <Field label={t('image.image')} hint={t('image.byHandHint')} issue={issue}>
        {(control) => (
          <AutoComplete
            {...control}
            className={css.mono}
            style={{ width: '100%' }}
            value={draft.image}
            options={options}
            placeholder="registry.example.com/team/image:tag"
            onChange={(image: string) => change({ image })}
          />
        )}
      </Field>
      {wanted !== '' && issue?.severity !== 'error' ? (
        <ImageLine
          state={imageState(draft.image, families, imagesOn(local, draft.agent), draft.agent)}
          draft={draft}
          local={local}
          change={change}
        />
      ) : null}
    </>
  )
}

function FamilyName({ family }: { family: Environment }) {
  const installed = family.versions.some((version) => version.installed)
  return (
    <span className={css.option}>
      <span
        className={css.monogram}
        style={{ '--hue': hueOf(family.icon || family.id) } as React.CSSProperties}
        aria-hidden
      >
        {monogram(family.title)}
      </span>
      <span className={css.optionName}>{family.title}</span>
      {installed ? <ImageBadge state={{ installed, size: 0 }} /> : null}
    </span>
  )
}

function ImageBadge({ state }: { state: ImageState }) {
  const { t } = useTranslation('launcher')
  const size = state.size > 0 ? formatBytes(state.size) : ''
  if (!state.installed) return size ? <span className={css.size}>↓ {size}</span> : null
  return (
    <Tag variant="filled" color="success" style={{ margin: 0 }}>
      {[t('image.installed'), size].filter(Boolean).join(' · ')}
    </Tag>
  )
}

/** What a launch would have to do for the image. */
function ImageLine({
  state,
  draft,
  local,
  change,
  quiet,
}: { state: ImageState; local: readonly Image[]; quiet?: boolean } & Pick<StepProps, 'draft' | 'change'>) {
  const { t } = useTranslation('launcher')
  const take = useCallback((image: string) => change({ image }), [change])
  const amount = state.size > 0 ? formatBytes(state.size) : ''
  if (state.installed) {
    if (quiet) return null
    return (
      <div className={css.fact}>
        <CircleCheck size={14} className={css.good} aria-hidden />
        {amount ? t('image.isInstalledSize', { amount }) : t('image.isInstalled')}
      </div>
    )
  }
  return (
    <>
      <div className={css.fact}>
        <CloudDownload size={14} aria-hidden />
        {amount ? t('image.pullsSize', { amount }) : t('image.pulls')}
      </div>
      <SendImage image={draft.image} to={draft.agent} images={local} onArrived={take} />
    </>
  )
}
