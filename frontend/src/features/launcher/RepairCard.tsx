import { Button } from 'antd'
import { CircleAlert, CircleCheck, TriangleAlert, Undo2 } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { formatExact } from '@/lib/time'
import css from './repair.module.css'
import { Card } from './Card'
import type { Draft, Step } from './draft'
import { issueText } from './issueText'
import { stepOf } from './issues'
import { RepairChoices } from './RepairChoices'
import type { Lack, Repair } from './repair'
import type { Judgement } from './useJudgement'
import type { RepairsUse } from './useRepairs'

interface RepairCardProps {
  draft: Draft
  lacks: readonly Lack[]
  repairs: RepairsUse
  judgement: Judgement
  onEdit: (step: Step) => void
}

/** What is asked for and not there, each with what can be taken in its place, and what was chosen so far. */
export function RepairCard({ draft, lacks, repairs, judgement, onEdit }: RepairCardProps) {
  const { t } = useTranslation('launcher')
  if (lacks.length === 0 && repairs.done.length === 0) return null
  const bad = lacks.some((lack) => lack.issue.severity === 'error')
  // Folders and devices are those of a machine: which ones there are is known when it is chosen.
  const placeless = lacks.some((lack) => lack.kind === 'agent' || lack.kind === 'group')
  return (
    <Card
      title={lacks.length > 0 ? t('repair.title', { count: lacks.length }) : t('repair.settled')}
      text={lacks.length > 0 ? t('repair.text') : t('repair.settledText')}
      bad={bad}
    >
      {lacks.length > 0 ? (
        <ul className={css.lacks}>
          {lacks.map((lack) => (
            <Row
              key={lack.field}
              draft={draft}
              lack={lack}
              repairs={repairs}
              judgement={judgement}
              held={placeless && lack.kind !== 'agent' && lack.kind !== 'group'}
              onEdit={onEdit}
            />
          ))}
        </ul>
      ) : null}
      {repairs.done.length > 0 ? (
        <ul className={css.done} aria-label={t('repair.settled')}>
          {repairs.done.map((repair, index) => (
            <Done key={index} repair={repair} onUndo={() => repairs.undo(repair)} />
          ))}
        </ul>
      ) : null}
    </Card>
  )
}

interface RowProps extends Omit<RepairCardProps, 'lacks'> {
  lack: Lack
  /** It waits for the choice of a machine. */
  held: boolean
}

const NEEDS_PLACE = new Set<Lack['kind']>(['image', 'accelerator', 'mount', 'part'])

function Row({ draft, lack, repairs, judgement, held, onEdit }: RowProps) {
  const { t } = useTranslation('launcher')
  const { severity, hint } = lack.issue
  const Icon = severity === 'error' ? CircleAlert : TriangleAlert
  const waits = held && NEEDS_PLACE.has(lack.kind)
  return (
    <li data-lack={lack.field}>
      <Icon size={15} aria-hidden className={severity === 'error' ? css.bad : css.slow} />
      <div className={css.what}>
        <div>
          <b>{t(`repair.kind.${lack.kind}`)}</b>{' '}
          <code>{lack.kind === 'notBefore' ? formatExact(lack.asked) : lack.asked}</code>
        </div>
        <div className={css.why}>
          {issueText(lack.issue, t)} {lack.issue.key ? '' : hint}
        </div>
        {waits ? (
          <div className={css.first}>{t('repair.machineFirst')}</div>
        ) : (
          <div className={css.choices}>
            <RepairChoices draft={draft} lack={lack} repairs={repairs} judgement={judgement} />
            <Button type="link" size="small" onClick={() => onEdit(stepOf(lack.field))}>
              {t('repair.edit')}
            </Button>
          </div>
        )}
      </div>
    </li>
  )
}

function Done({ repair, onUndo }: { repair: Repair; onUndo: () => void }) {
  const { t } = useTranslation('launcher')
  return (
    <li>
      <CircleCheck size={15} aria-hidden className={css.good} />
      <span>
        {t(`repair.kind.${repair.kind}`)} <code>{repair.asked}</code> <span aria-hidden>→</span>{' '}
        {repair.now === '' ? t('repair.leftOut') : repair.now}
      </span>
      {repair.final ? null : (
        <Button
          type="text"
          size="small"
          icon={<Undo2 size={13} />}
          aria-label={t('repair.undoOf', { asked: repair.asked })}
          onClick={onUndo}
        >
          {t('repair.undo')}
        </Button>
      )}
    </li>
  )
}
