import { Button } from 'antd'
import { CirclePower, Clock, Download, FileCode, GitCompareArrows, TriangleAlert, Unplug } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { useLacks } from '@/api/useLacks'
import { useSessionActions } from '@/lib/actions'
import { type AnnouncedEnd, announcedEnd } from '@/lib/idle'
import { isLive } from '@/lib/status'
import { formatExact, formatRelative, past } from '@/lib/time'
import { useNow } from '@/lib/useNow'
import { CopyButton } from '@/ui/CopyButton'
import { EndingText } from '@/ui/EndingText'
import { PullBar } from '@/ui/PullBar'
import { Countdown, ReclaimButtons, useEndReason } from '@/ui/Reclaim'
import { usePullTexts } from '@/ui/useWhy'
import { WaitReason } from '@/ui/WaitReason'
import { AccountsSection } from './AccountsSection'
import { cliLines } from './cliLines'
import { Dependencies } from './Dependencies'
import { EndImage } from './EndImage'
import { Facts } from './Facts'
import { Failure } from './Failure'
import { IdleSection } from './IdleSection'
import { Kernels } from './Kernels'
import { LiveCharts } from './LiveCharts'
import { MoveButtons } from './MoveButtons'
import { ProjectNotice } from './ProjectNotice'
import { WaitHelp } from './WaitHelp'
import css from './SessionDrawer.module.css'

/** It is about to be reclaimed: when and why, and what can be done about it. */
function Ending({ session, end }: { session: Session; end: AnnouncedEnd }) {
  const { t } = useTranslation()
  const reason = useEndReason()(end)
  const noImage = useLacks()(session.agent, 'commit') !== ''
  return (
    <div className={`${css.notice} ${css.noticeWarn}`} role="status">
      <TriangleAlert size={16} aria-hidden />
      <div className={css.noticeBody}>
        <div className={css.noticeTitle} title={formatExact(end.at)}>
          <Countdown end={end} />
        </div>
        <div className={css.noticeText}>
          {reason} {t('reclaim.loss')}
        </div>
        <div className={css.noticeButtons}>
          <ReclaimButtons sessions={[session]} noImage={noImage} />
        </div>
      </div>
    </div>
  )
}

/** What a person must know first: why it waits, what is pulled, what went wrong. */
function Notices({ session }: { session: Session }) {
  const { t } = useTranslation(['session', 'common'])
  const actions = useSessionActions()
  const pullTexts = usePullTexts()
  const unheard = isLive(session.status) ? session.lastHeard : undefined
  const now = useNow(unheard !== undefined)
  const end = announcedEnd(session)
  const over = end !== undefined || !isLive(session.status) // it is said elsewhere, or has passed
  const warnings = over ? session.warnings.filter((w) => !w.code.startsWith('session_idle_')) : session.warnings
  return (
    <>
      {unheard ? (
        <div className={`${css.notice} ${css.noticeWarn}`} role="status">
          <Unplug size={16} aria-hidden />
          <div className={css.noticeBody} title={formatExact(unheard)}>
            <div className={css.noticeTitle}>
              {t('session:unheard', { agent: session.agent, when: formatRelative(past(unheard, now), now) })}
            </div>
            <div className={css.noticeText}>{t('common:reach.asThen')}</div>
          </div>
        </div>
      ) : null}
      {session.ending ? (
        <div className={`${css.notice} ${css.noticeBad}`}>
          <CirclePower size={16} aria-hidden />
          <div className={css.noticeBody}>
            <div className={`${css.noticeTitle} num`}>
              <EndingText ending={session.ending} />
            </div>
            <div className={css.noticeButtons}>
              <Button size="small" onClick={() => actions.undoTerminate([session.id])}>
                {t(session.ending.error ? 'common:ending.dismiss' : 'common:ending.undo')}
              </Button>
            </div>
          </div>
        </div>
      ) : null}
      {session.error ? <Failure session={session} error={session.error} /> : null}
      {session.status === 'PENDING' && session.wait ? (
        <div className={`${css.notice} ${css.noticeWarn}`}>
          <Clock size={16} aria-hidden />
          <div className={css.noticeBody}>
            <div className={css.noticeTitle}>
              {t('session:waiting', {
                place: t('common:wait.place', { position: session.wait.position, machine: session.agent }),
              })}
            </div>
            <div className={css.noticeText}>
              <WaitReason wait={session.wait} machine={session.agent} />
            </div>
            <MoveButtons session={session} />
            <WaitHelp session={session} />
          </div>
        </div>
      ) : null}
      {session.status === 'PULLING' && session.pull ? (
        <div className={css.notice}>
          <Download size={16} aria-hidden />
          <div className={css.noticeBody}>
            <div className={css.noticeTitle}>{t('common:pull.label')}</div>
            <div className={css.pullBar}>
              <PullBar pull={session.pull} />
            </div>
            <div className={`${css.noticeText} num`}>{pullTexts(session.pull).join(' · ')}</div>
          </div>
        </div>
      ) : null}
      {end ? <Ending session={session} end={end} /> : null}
      {warnings.map((warning) => (
        <div key={`${warning.code}${warning.device ?? ''}${warning.at}`} className={`${css.notice} ${css.noticeWarn}`}>
          <TriangleAlert size={16} aria-hidden />
          <div className={css.noticeBody} title={formatExact(warning.at)}>
            <div className={css.noticeTitle}>
              {t(`common:warning.${warning.code as 'session_run_device-lost'}`, { defaultValue: warning.title })}
            </div>
            <div className={css.noticeText}>{warning.text}</div>
          </div>
        </div>
      ))}
    </>
  )
}

function CommandLines({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  return (
    <section>
      <div className={css.sectionHead}>
        <h3>{t('section.cli')}</h3>
      </div>
      <div className={css.cli}>
        {cliLines(session).map(({ key, line }) => (
          <div key={key} style={{ display: 'contents' }}>
            <span className={css.cliName}>{t(`cli.${key}`)}</span>
            <code className={css.cliLine} title={line}>
              {line}
            </code>
            <CopyButton text={line} label={t('action.copyLine')} />
          </div>
        ))}
      </div>
    </section>
  )
}

function RecipeSection({ session }: { session: Session }) {
  const { t } = useTranslation('recipes')
  const actions = useSessionActions()
  const source = { kind: 'session', id: session.id } as const
  return (
    <section>
      <div className={css.sectionHead}>
        <h3>{t('section')}</h3>
        <span className={css.rowButtons}>
          <Button size="small" icon={<FileCode size={14} />} onClick={() => actions.showRecipe(source)}>
            {t('show')}
          </Button>
          <Button size="small" icon={<GitCompareArrows size={14} />} onClick={() => actions.compareRecipes(source)}>
            {t('compare')}
          </Button>
        </span>
      </div>
      <div className={css.dim}>{t('sectionText')}</div>
    </section>
  )
}

export function Overview({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  return (
    <div className={css.overview}>
      <Notices session={session} />
      <ProjectNotice session={session} />
      <EndImage session={session} />
      {session.startedAt ? <LiveCharts session={session} /> : null}
      <section>
        <div className={css.sectionHead}>
          <h3>{t('section.details')}</h3>
        </div>
        <Facts session={session} />
      </section>
      <Dependencies session={session} />
      <Kernels session={session} />
      <IdleSection session={session} />
      <AccountsSection session={session} />
      <RecipeSection session={session} />
      <CommandLines session={session} />
    </div>
  )
}
