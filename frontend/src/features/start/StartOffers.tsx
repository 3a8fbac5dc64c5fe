import { useQuery } from '@tanstack/react-query'
import { Button, Tooltip } from 'antd'
import { LoaderCircle, type LucideIcon, NotebookPen, Pin, SlidersHorizontal, SquareTerminal } from 'lucide-react'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { call } from '@/api/client'
import { environmentTitle } from '@/api/environment'
import { useAgents, useEnvironments, useMachines, useRecents, useSessionBook, useSettings } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { Preview } from '@/api/types.gen'
import { requestText } from '@/lib/accelerator'
import { formatBytes, parseBytes } from '@/lib/bytes'
import { waitTexts } from '@/lib/phrases'
import { newOffer, type Offer, recentOffers } from './offers'
import css from './start.module.css'
import { useStart } from './useStart'

/** What would happen is asked again this often, in milliseconds. */
const AGAIN = 10_000

const none: never[] = []

interface StartOffersProps {
  /** The launcher, filled in with an entry of the history. */
  review: (id: string) => string
  /** Stands in the middle of an empty page. */
  centred?: boolean
}

/** What one click starts: a notebook on this computer, the last one, and what is pinned. */
export function StartOffers({ review, centred }: StartOffersProps) {
  const { t } = useTranslation('start')
  const asked = [useEnvironments(), useRecents(), useSessionBook(), useAgents(), useMachines()] as const
  const [environments, recents, book, agents, machines] = asked
  const settings = useSettings().data
  const opens = settings?.openApps ?? true
  const keep = settings?.keepHome
  const known = useMemo(
    () => ({
      environments: environments.data ?? none,
      recents: recents.data ?? none,
      sessions: Object.values(book.data ?? {}),
      agents: agents.data ?? none,
      machines: machines.data ?? none,
    }),
    [environments.data, recents.data, book.data, agents.data, machines.data],
  )
  const fresh = useMemo(() => newOffer(known, keep), [known, keep])
  const rest = useMemo(() => recentOffers(known), [known])
  const preview = usePreview(fresh)
  const { start, busy } = useStart()
  const navigate = useNavigate()
  const look = `${css.start} ${centred ? css.centred : ''}`
  // Until it is known what is offered its room is kept: what is below must not move under the pointer.
  if (asked.some(({ isPending }) => isPending)) return <div className={`${look} ${css.room}`} aria-hidden />
  // Nobody could launch it now: there is no engine, or no machine has that much.
  const possible = fresh && !preview.failed ? fresh : null
  if (!possible && rest.length === 0) return null
  const press = (offer: Offer) => {
    if (offer.review && !offer.session) void navigate(review(offer.key))
    else start(offer, offer.kind === 'new' && preview.data?.wait !== undefined)
  }
  const one = (offer: Offer) => (
    <Tile key={offer.key} offer={offer} busy={busy} review={review(offer.key)} onPress={() => press(offer)} />
  )
  return (
    <section className={look} aria-label={t('title')}>
      <div className={css.head}>
        <h2 className={css.title}>{t('title')}</h2>
        <p className={css.text}>{t(opens ? 'text' : 'textClosed')}</p>
      </div>
      <div className={css.tiles}>
        {possible ? (
          <NewTile offer={possible} preview={preview.data} busy={busy} onPress={() => press(possible)} />
        ) : null}
        {rest.map(one)}
      </div>
    </section>
  )
}

/** What the new notebook would do if it was launched now, and whether it could not be. */
function usePreview(offer: Offer | null): { data: Preview | undefined; failed: boolean } {
  const spec = offer?.spec
  const { data, isError } = useQuery({
    queryKey: keys.preview(JSON.stringify(spec ?? null), '', 1),
    queryFn: ({ signal }) => call('preview', { body: spec ?? { image: '', resources: {} }, signal }),
    enabled: spec !== undefined,
    refetchInterval: AGAIN,
    staleTime: 1000,
    retry: false,
  })
  return { data, failed: isError || (data?.errors.length ?? 0) > 0 }
}

function useResourcesText({ spec }: Offer): string {
  const { t } = useTranslation('phrases')
  const gpu = requestText(spec.accelerator)
  const memory = parseBytes(spec.resources.memory)
  return [
    t('cpu', { count: spec.resources.cpu ?? 1 }),
    memory ? formatBytes(memory) : '',
    /^[\d.]+$/.test(gpu) ? t('gpus', { count: Number(gpu) }) : gpu,
  ]
    .filter(Boolean)
    .join(' · ')
}

interface NewTileProps {
  offer: Offer
  preview: Preview | undefined
  busy: string | undefined
  onPress: () => void
}

function NewTile({ offer, preview, busy, onPress }: NewTileProps) {
  const { t } = useTranslation('start')
  const resources = useResourcesText(offer)
  const environments = useEnvironments().data ?? none
  const local = useAgents().data?.find((agent) => agent.local)?.name
  const app = t(`app.${offer.jupyter as 'lab'}`)
  const away = preview && local !== undefined && preview.agent !== local ? preview.agent : ''
  const size = environments.flatMap((f) => f.versions).find((v) => v.image === offer.spec.image)?.size ?? 0
  const amount = size > 0 ? formatBytes(size) : ''
  let outlook = t('checking')
  if (preview?.wait) outlook = t('waits', { reason: waitTexts(preview.wait, preview.agent).lead })
  else if (preview && !preview.image) outlook = amount ? t('pullsSize', { amount }) : t('pulls')
  else if (preview) outlook = t('atOnce')
  return (
    <Frame
      kind={offer.kind}
      icon={NotebookPen}
      label={away ? t('on', { app, machine: away }) : t('here', { app })}
      text={environmentTitle(environments, offer.spec.image)}
      resources={resources}
      more={outlook}
      busy={busy === offer.key}
      disabled={busy !== undefined}
      onPress={onPress}
    />
  )
}

interface TileProps {
  offer: Offer
  busy: string | undefined
  review: string
  onPress: () => void
}

function Tile({ offer, busy, review, onPress }: TileProps) {
  const { t } = useTranslation('start')
  const resources = useResourcesText(offer)
  const navigate = useNavigate()
  const environments = useEnvironments().data ?? none
  const { name, session, kind } = offer
  const environment = environmentTitle(environments, offer.spec.image) || offer.spec.image
  let more = t(kind === 'last' ? 'last' : 'pinned')
  if (session) more = t(session.status === 'RUNNING' ? 'runs' : 'onItsWay', { machine: session.agent })
  else if (offer.review) more = t('reviews')
  return (
    <Frame
      kind={kind}
      icon={kind === 'last' ? NotebookPen : offer.jupyter ? Pin : SquareTerminal}
      label={name}
      text={environment}
      resources={resources}
      more={offer.count > 1 ? `${more} · ${t('many', { count: offer.count })}` : more}
      busy={busy === offer.key}
      disabled={busy !== undefined}
      onPress={onPress}
    >
      <Tooltip title={t('review', { name })}>
        <Button
          type="text"
          size="small"
          className={css.review ?? ''}
          aria-label={t('review', { name })}
          icon={<SlidersHorizontal size={14} />}
          onClick={() => void navigate(review)}
        />
      </Tooltip>
    </Frame>
  )
}

interface FrameProps {
  kind: Offer['kind']
  icon: LucideIcon
  label: string
  text: string
  resources: string
  more: string
  busy: boolean
  disabled: boolean
  onPress: () => void
  children?: React.ReactNode
}

function Frame({ kind, icon, label, text, resources, more, busy, disabled, onPress, children }: FrameProps) {
  const Icon = busy ? LoaderCircle : icon
  return (
    <div className={css.tile} data-offer={kind}>
      <button type="button" className={css.press} disabled={disabled} onClick={onPress}>
        <span className={css.icon}>
          <Icon size={18} strokeWidth={1.75} className={busy ? css.turn : undefined} aria-hidden />
        </span>
        <span className={css.words}>
          <span className={css.name}>{label}</span>
          <span className={css.line} title={text}>
            {text}
          </span>
          <span className={css.line}>{resources}</span>
          <span className={css.more}>{more}</span>
        </span>
      </button>
      {children}
    </div>
  )
}
