import { Alert, Button, Tag } from 'antd'
import { Pencil, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useAgents, useSettings } from '@/api/hooks'
import type { ApiProblem } from '@/api/client'
import { findVersion } from '@/api/environment'
import { formatBytes } from '@/lib/bytes'
import { formatExact, formatLength } from '@/lib/time'
import { CopyButton } from '@/ui/CopyButton'
import { SlurmWords } from '@/ui/SlurmWords'
import css from './launcher.module.css'
import { totalOf } from './accelerator'
import { amountToBytes } from './amount'
import { placeOf } from './away'
import { Card } from './Card'
import { type Draft, shmOf, type Step } from './draft'
import { Variables } from './EnvFields'
import { IssueLine } from './Field'
import { homeOf } from './home'
import { AcceleratorFacts, IdleWords, QueueWords } from './QueueFacts'
import { issuesOf } from './issues'
import { expandPorts } from './ports'
import { ownerOf } from './owner'
import { writeSpan } from './queueDraft'
import { RepairCard } from './RepairCard'
import type { Lack } from './repair'
import { askedOf } from './slurm'
import { JobScript } from './SlurmCard'
import type { StepProps } from './StepProps'
import { useImages } from './useImages'
import type { Judgement } from './useJudgement'
import { useNeeds } from './useNeeds'
import type { RepairsUse } from './useRepairs'
import { mountTarget } from './mountPath'

interface ConfirmStepProps extends StepProps {
  lacks: readonly Lack[]
  repairs: RepairsUse
  judgement: Judgement
  /** Why the last launch was refused, where no field is to blame. */
  failure: ApiProblem | null
  /** What is about to happen. */
  outlook: ReactNode
  onEdit: (step: Step) => void
}

export function ConfirmStep({ draft, issues, lacks, repairs, judgement, failure, outlook, onEdit }: ConfirmStepProps) {
  const { t } = useTranslation('launcher')
  const owner = ownerOf(draft, useAgents().data ?? [])
  const asked = judgement.current ? judgement.preview.data?.command : undefined
  const command = owner === '' ? asked : asked?.replace(/^slipway run\b/, `slipway run --owner ${owner}`)
  const others = issuesOf(issues.all, 'confirm')
  return (
    <>
      {failure ? <Alert type="error" showIcon title={failure.message} description={failure.hint || undefined} /> : null}
      <RepairCard draft={draft} lacks={lacks} repairs={repairs} judgement={judgement} onEdit={onEdit} />
      <div>{outlook}</div>
      {others.map((issue) => (
        <IssueLine key={issue.field} issue={issue} />
      ))}
      <Review step="type" issues={issues} onEdit={onEdit}>
        <TypeFacts draft={draft} owner={owner} />
      </Review>
      <Review step="environment" issues={issues} onEdit={onEdit}>
        <EnvironmentFacts draft={draft} judgement={judgement} />
      </Review>
      <Review step="storage" issues={issues} onEdit={onEdit}>
        <StorageFacts draft={draft} />
      </Review>
      <Review step="network" issues={issues} onEdit={onEdit}>
        <Facts
          rows={[
            [
              t('ports.label'),
              draft.ports.length === 0 ? <Quiet>{t('confirm.noPorts')}</Quiet> : <Ports draft={draft} />,
            ],
            [t('ssh.title'), draft.noSSH ? t('ssh.off') : <Quiet>{t('ssh.on')}</Quiet>],
          ]}
        />
      </Review>
      <Card
        title={t('confirm.command')}
        aside={command ? <CopyButton text={command} label={t('confirm.copyCommand')} /> : undefined}
      >
        <pre className={css.command}>{command ?? '…'}</pre>
      </Card>
      {judgement.current ? <JobScript text={judgement.preview.data?.sbatch} /> : null}
    </>
  )
}

function Review({
  step,
  issues,
  onEdit,
  children,
}: {
  step: Exclude<Step, 'confirm'>
  issues: StepProps['issues']
  onEdit: (step: Step) => void
  children: ReactNode
}) {
  const { t } = useTranslation('launcher')
  const mine = issuesOf(issues.all, step)
  const bad = mine.some((issue) => issue.severity === 'error')
  return (
    <Card
      title={t(`step.${step}`)}
      bad={bad}
      aside={
        <Button
          type="text"
          size="small"
          icon={<Pencil size={13} />}
          aria-label={t('confirm.editStep', { step: t(`step.${step}`) })}
          onClick={() => onEdit(step)}
        >
          {t('confirm.edit')}
        </Button>
      }
    >
      {children}
      {mine.length > 0 ? (
        <div className={css.faults}>
          {mine.map((issue) => (
            <IssueLine key={`${issue.field} ${issue.key ?? issue.message ?? ''}`} issue={issue} />
          ))}
        </div>
      ) : null}
    </Card>
  )
}

function Facts({ rows }: { rows: readonly (readonly [string, ReactNode] | null)[] }) {
  return (
    <dl className={css.facts}>
      {rows.map((row) =>
        row ? (
          <div key={row[0]}>
            <dt>{row[0]}</dt>
            <dd>{row[1]}</dd>
          </div>
        ) : null,
      )}
    </dl>
  )
}

const Quiet = ({ children }: { children: ReactNode }) => <span className={css.quiet}>{children}</span>

function TypeFacts({ draft, owner }: { draft: Draft; owner: string }) {
  const { t } = useTranslation('launcher')
  const place = placeOf(draft)
  const machine = place
    ? [place, draft.group].filter(Boolean).join(' · ')
    : draft.group
      ? t('agent.anyOf', { group: draft.group })
      : t('agent.auto')
  const batch = draft.type === 'batch'
  return (
    <Facts
      rows={[
        [t('type.title'), t(`type.${draft.type}`)],
        [t('name.label'), draft.name || <Quiet>{t('confirm.randomName')}</Quiet>],
        [t('agent.label'), machine],
        owner === '' ? null : [t('owner.label'), owner],
        batch ? [t('batch.command'), <pre className={css.command}>{draft.command || '–'}</pre>] : null,
        batch && draft.startAt !== null ? [t('batch.start'), draft.startAt ? formatExact(draft.startAt) : '–'] : null,
        batch && draft.timeout
          ? [t('batch.timeout'), `${draft.timeout.value ?? '–'} ${t(`unit.${draft.timeout.unit}`)}`]
          : null,
        [t('queue.title'), <QueueWords draft={draft} />],
        [t('idle.title'), <IdleWords draft={draft} />],
        draft.commitOnEnd ? [t('end.title'), t('end.is', { count: draft.commitOnEnd.keep ?? 0 })] : null,
      ]}
    />
  )
}

function EnvironmentFacts({ draft, judgement }: { draft: Draft; judgement: Judgement }) {
  const { t } = useTranslation('launcher')
  const { environments } = useImages()
  const found = findVersion(environments.data ?? [], draft.image)
  const needs = useNeeds()
  const memory = amountToBytes(draft.memory)
  // Every container of every session is granted the same.
  const times = (draft.cluster ?? 1) * (draft.count ?? 1)
  const slurm = draft.slurm && askedOf(draft.slurm)
  return (
    <>
      <Facts
        rows={[
          [
            t('image.title'),
            <>
              {found ? `${found.family.title} · ${found.version.title}` : null}{' '}
              <code className={css.reference}>{draft.image || '–'}</code>
            </>,
          ],
          found && needs(found.family) ? [t('needs.title'), needs(found.family)] : null,
          draft.env.length > 0 ? [t('env.title'), <Variables env={draft.env} />] : null,
          draft.setup.trim() !== '' ? [t('setup.title'), <pre className={css.command}>{draft.setup}</pre>] : null,
          draft.secrets.length > 0 ? [t('secrets.title'), draft.secrets.join(', ')] : null,
          [
            t('threads.label'),
            draft.threads === 'auto'
              ? t('confirm.threadsAuto', { count: draft.cpu ?? 1 })
              : String(draft.threads ?? '–'),
          ],
          draft.admin ? [t('admin.title'), t('admin.is')] : null,
          slurm ? [t('slurm.title'), <SlurmWords slurm={slurm} />] : null,
          draft.accelerator.mode === 'none'
            ? null
            : [t('accelerator.title'), <AcceleratorFacts draft={draft} judgement={judgement} />],
        ]}
      />
      <div className={css.total} role="group" aria-label={t('confirm.total')}>
        <span className={css.totalName}>{t('confirm.total')}</span>
        <span>
          <b>{draft.cpu === null ? '–' : draft.cpu * times}</b> {t('resources.cpuUnit')}
        </span>
        <span>
          <b>{memory === null ? '–' : formatBytes(memory * times)}</b> {t('resources.memory')}
        </span>
        <span>
          <b>{formatBytes(shmOf(draft) * times)}</b> {t('resources.shm')}
          {draft.shm ? null : <Quiet> · {t('automatic')}</Quiet>}
        </span>
        {draft.accelerator.mode === 'none' ? null : (
          <span>
            <b>{totalOf(draft.accelerator, times)}</b> GPU
          </span>
        )}
        {times > 1 ? (
          <Quiet>
            {t('many.of', { sessions: draft.count ?? 1, kernels: draft.cluster ?? 1 })} ·{' '}
            {t('many.each', { cpu: draft.cpu ?? '–', memory: memory === null ? '–' : formatBytes(memory) })}
          </Quiet>
        ) : null}
      </div>
    </>
  )
}

function StorageFacts({ draft }: { draft: Draft }) {
  const { t } = useTranslation('launcher')
  const home = homeOf(draft, useSettings().data?.keepHome)
  const kept = home && 'keep' in home ? t('home.kept', { time: formatLength(writeSpan(home.keep)) }) : null
  if (draft.mounts.length === 0)
    return kept ? (
      kept
    ) : (
      <div className={`${css.outlook} ${css.slow}`}>
        <TriangleAlert size={16} aria-hidden />
        <div>
          <div className={css.outlookTitle}>{t('confirm.noMount')}</div>
          <div className={css.outlookText}>{t(draft.admin ? 'admin.keep' : 'confirm.noMountText')}</div>
        </div>
      </div>
    )
  return (
    <>
      <ul className={css.mounts}>
        {draft.mounts.map((mount, index) => (
          <li key={index}>
            <code>
              {mount.folder === undefined
                ? mount.source || '–'
                : [mount.folder, mount.path?.trim()].filter(Boolean).join('/')}
            </code>
            <span aria-hidden>→</span>
            <code>{mountTarget(mount)}</code>
            {mount.readOnly ? (
              <Tag variant="filled" style={{ margin: 0 }}>
                {t('storage.readOnly')}
              </Tag>
            ) : null}
          </li>
        ))}
      </ul>
      {kept}
    </>
  )
}

function Ports({ draft }: { draft: Draft }) {
  const ports = expandPorts(draft.ports).toSorted((a, b) => a - b)
  const shown = ports.length > 0 ? ports.map(String) : draft.ports
  return (
    <span className={css.ports}>
      {shown.map((port, index) => (
        <Tag key={index} className={css.port} style={{ margin: 0 }}>
          {port}
        </Tag>
      ))}
    </span>
  )
}
