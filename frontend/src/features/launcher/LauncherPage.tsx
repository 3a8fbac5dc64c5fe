import { Alert, Button, Popconfirm, Tooltip } from 'antd'
import { ArrowRight, Rocket } from 'lucide-react'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { firstChoice } from '@/api/environment'
import { useAgents, useSettings } from '@/api/hooks'
import type { Folder } from '@/api/types.gen'
import { PageHeader } from '@/ui/PageHeader'
import css from './launcher.module.css'
import { ConfirmStep } from './ConfirmStep'
import { type Draft, type Step, STEPS } from './draft'
import { encodeDraft } from './draftUrl'
import { EnvironmentStep } from './EnvironmentStep'
import { homeOf } from './home'
import { useImages } from './useImages'
import { imageState } from './images'
import { stepsInError } from './issues'
import { shownIssues } from './issueText'
import { NetworkStep } from './NetworkStep'
import { ownerOf } from './owner'
import { Outlook } from './Outlook'
import { Stepper } from './Stepper'
import { StorageStep } from './StorageStep'
import { TypeStep } from './TypeStep'
import { useArrivals } from './useArrivals'
import { useDraft } from './useDraft'
import { type Judgement, useJudgement } from './useJudgement'
import { type LaunchUse, useLaunch } from './useLaunch'
import { useLacks } from './useLacks'
import { useRepairs } from './useRepairs'
import { useSummary } from './useSummary'

const none: never[] = []

interface LauncherPageProps {
  tools?: ReactNode
  /** What an empty launcher offers above its first step. */
  start?: ReactNode
  /** The files of a folder, over the launcher. */
  files: (folder: Folder, onClose: () => void) => ReactNode
}

/** Five steps to a session, in any order, all judged together. */
export function LauncherPage({ tools, start, files }: LauncherPageProps) {
  const { t } = useTranslation('launcher')
  const use = useDraft()
  const agents = useAgents().data ?? none
  const { environments, images } = useImages()
  const families = environments.data ?? none
  const local = agents.find((agent) => agent.local)?.name
  const draft = useMemo<Draft>(
    () =>
      use.draft.image === '' && !use.draft.manual ? { ...use.draft, image: firstChoice(families, local) } : use.draft,
    [use.draft, families, local],
  )
  const launch = useLaunch(use.leave)
  const owner = ownerOf(draft, agents)
  const setting = useSettings().data?.keepHome
  const judgement = useJudgement(draft, owner, launch.refusal)
  const issues = useMemo(() => shownIssues(judgement.issues, use.left), [judgement.issues, use.left])
  const summary = useSummary(draft, families)
  const outlook = (
    <Outlook
      judgement={judgement}
      shown={issues}
      image={imageState(draft.image, families, images.data ?? none)}
      count={draft.count ?? 1}
    />
  )
  const repairs = useRepairs(use.change, use.origin)
  const lacks = useLacks(draft, judgement, repairs.pulled)
  useArrivals(use.change)
  const top = useRef<HTMLDivElement>(null)
  useEffect(() => {
    top.current?.scrollTo(0, 0)
  }, [use.step])

  const props = { draft, issues, change: use.change }
  return (
    <div className={css.page}>
      <div className={css.scroll} ref={top}>
        <PageHeader title={t('title')}>{tools}</PageHeader>
        {use.recentMissing ? <Alert type="warning" showIcon closable title={t('recentMissing')} /> : null}
        <div className={css.columns}>
          <div className={css.side}>
            <Stepper step={use.step} left={use.left} bad={stepsInError(issues.all)} summary={summary} onGo={use.go} />
            {use.step === 'confirm' ? null : (
              <aside className={css.beside} aria-label={t('outlook.title')}>
                <h2 className={css.besideTitle}>{t('outlook.title')}</h2>
                {outlook}
              </aside>
            )}
          </div>
          <div className={css.content}>
            {use.step === 'type' ? (
              <WhileEmpty key={use.origin} draft={use.draft}>
                {start}
              </WhileEmpty>
            ) : null}
            {use.step === 'type' ? <TypeStep {...props} /> : null}
            {use.step === 'environment' ? <EnvironmentStep {...props} judgement={judgement} /> : null}
            {use.step === 'storage' ? (
              <StorageStep {...props} lands={judgement.preview.data?.agent} files={files} />
            ) : null}
            {use.step === 'network' ? <NetworkStep {...props} /> : null}
            {use.step === 'confirm' ? (
              <ConfirmStep
                {...props}
                lacks={lacks}
                repairs={repairs}
                judgement={judgement}
                failure={launch.failure}
                outlook={outlook}
                onEdit={use.go}
              />
            ) : null}
          </div>
        </div>
      </div>
      <Bar
        step={use.step}
        go={use.go}
        reset={use.reset}
        judgement={judgement}
        launch={launch}
        losesHome={draft.mounts.length === 0 && homeOf(draft, setting) === null}
        count={draft.count ?? 1}
        owner={owner}
      />
    </div>
  )
}

/** Shows something if the draft was empty at first. It stays while the first step is filled in: nothing jumps. */
function WhileEmpty({ draft, children }: { draft: Draft; children: ReactNode }) {
  const [empty] = useState(() => encodeDraft(draft) === '')
  return empty ? children : null
}

interface BarProps {
  step: Step
  go: (step: Step) => void
  reset: () => void
  judgement: Judgement
  launch: LaunchUse
  /** Nothing is mounted, and the home is not kept. */
  losesHome: boolean
  /** How many sessions are launched at once. */
  count: number
  /** For whom; empty: oneself. */
  owner: string
}

/** The buttons that lead through the steps. */
function Bar({ step, go, reset, judgement, launch, losesHome, count, owner }: BarProps) {
  const { t } = useTranslation('launcher')
  const at = STEPS.indexOf(step)
  const previous = STEPS[at - 1]
  const next = STEPS[at + 1]
  const wrong = judgement.errors.length
  return (
    <div className={css.bar}>
      <Popconfirm
        title={t('resetTitle')}
        description={t('resetText')}
        okText={t('reset')}
        cancelText={t('keep')}
        onConfirm={reset}
      >
        <Button type="text" className={css.reset}>
          {t('reset')}
        </Button>
      </Popconfirm>
      <div className={css.barEnd}>
        {previous ? <Button onClick={() => go(previous)}>{t('previous')}</Button> : null}
        {next && next !== 'confirm' ? <Button onClick={() => go(next)}>{t('next')}</Button> : null}
        {step === 'confirm' ? (
          <Tooltip title={wrong > 0 ? t('launchBlocked', { count: wrong }) : ''}>
            <Button
              type="primary"
              icon={<Rocket size={15} />}
              loading={launch.busy}
              disabled={wrong > 0}
              onClick={() => launch.launch(judgement.spec, losesHome, count, owner)}
            >
              {count > 1 ? t('many.launch', { count }) : t('launch')}
            </Button>
          </Tooltip>
        ) : (
          <Button type="primary" icon={<ArrowRight size={15} />} iconPlacement="end" onClick={() => go('confirm')}>
            {t(next === 'confirm' ? 'review' : 'skip')}
          </Button>
        )}
      </div>
    </div>
  )
}
