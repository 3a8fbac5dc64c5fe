import { Button, Skeleton } from 'antd'
import { BrainCircuit, Columns2, Eraser } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { asProblem } from '@/api/client'
import { useAgents } from '@/api/hooks'
import { useServices } from '@/api/services'
import type { Service } from '@/api/types.gen'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { ListCard, ListFill, ListPage } from '@/ui/ListPage'
import { PageHeader } from '@/ui/PageHeader'
import { Composer } from './Composer'
import { Conversation, isOpen, type Turn } from './conversation'
import { ParametersPanel } from './ParametersPanel'
import css from './playground.module.css'
import { SideHead } from './SideHead'
import { Turns } from './Turns'
import { useSides } from './useSides'

const conversation = new Conversation()

/** Talks to a service, or to two at a time to compare them. */
export function PlaygroundPage({ talk = conversation }: { talk?: Conversation }) {
  const { t } = useTranslation('playground')
  const query = useServices()
  if (query.data && query.data.length > 0) return <Talk talk={talk} services={query.data} />
  return (
    <ListPage>
      <PageHeader title={t('title')} />
      <ListCard>
        <ListFill>
          {query.isPending ? (
            <Skeleton active style={{ padding: 24 }} />
          ) : query.data ? (
            <EmptyState icon={BrainCircuit} title={t('none.title')} text={t('none.text')}>
              <Link to="/services/new">
                <Button type="primary">{t('none.new')}</Button>
              </Link>
            </EmptyState>
          ) : (
            <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} />
          )}
        </ListFill>
      </ListCard>
    </ListPage>
  )
}

function Talk({ talk, services }: { talk: Conversation; services: Service[] }) {
  const { t } = useTranslation('playground')
  const { turns, draft, before, parameters } = useSyncExternalStore(talk.subscribe, talk.state)
  const several = (useAgents().data?.length ?? 0) > 1
  const last = turns.at(-1)
  const { sides, choose, compare } = useSides(
    services,
    [0, 1].map((side) => last?.answers[side]?.of),
  )
  const compares = sides.length > 1
  const again = (side: number) => {
    const of = sides[side]
    if (of) talk.again(side, of)
  }
  return (
    <ListPage>
      <PageHeader title={t('title')}>
        <Button
          icon={<Columns2 size={15} />}
          type={compares ? 'primary' : 'default'}
          ghost={compares}
          aria-pressed={compares}
          onClick={() => compare(!compares)}
        >
          {t('compare')}
        </Button>
        <Button icon={<Eraser size={15} />} disabled={turns.length === 0} onClick={() => talk.clear()}>
          {t('clear')}
        </Button>
      </PageHeader>
      <ListCard>
        <div className={css.frame}>
          <div className={css.talk}>
            <div className={css.sides}>
              {sides.map((of, side) => (
                <SideHead
                  key={side}
                  label={t(side === 0 ? 'service' : 'second')}
                  of={of}
                  services={services}
                  several={several}
                  onChoose={(next) => choose(side, next)}
                />
              ))}
            </div>
            <Turns
              turns={turns}
              sides={sides}
              services={services}
              editing={before !== undefined}
              onAgain={again}
              onEdit={() => talk.edit()}
            />
            <Composer
              draft={draft}
              busy={last?.answers.some(isOpen) ?? false}
              editing={before !== undefined}
              placeholder={compares ? t('askBoth') : t('askOne', { name: sides[0]?.name })}
              onWrite={(next) => talk.write(next)}
              onSend={() => talk.send(sides)}
              onStop={() => talk.stop()}
              onCancelEdit={() => talk.cancelEdit()}
            />
            <Progress turn={last} />
          </div>
          <ParametersPanel parameters={parameters} onChange={(change) => talk.adjust(change)} />
        </div>
      </ListCard>
    </ListPage>
  )
}

/** Says when an answer begins and ends, for screen readers: every word would be too much. */
function Progress({ turn }: { turn: Turn | undefined }) {
  const { t } = useTranslation('playground')
  return (
    <div className="unseen" role="status">
      {turn?.answers
        .filter((answer) => answer !== undefined)
        .map((answer) => t(`progress.${answer.outcome}`, { name: answer.of.name }))
        .join(' ')}
    </div>
  )
}
