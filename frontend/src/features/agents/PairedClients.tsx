import { useQuery, useQueryClient } from '@tanstack/react-query'
import { App, Button, Input, Select, Skeleton, Tag } from 'antd'
import { KeyRound, Laptop } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { PairCode, PairedClient, PairRequest } from '@/api/types.gen'
import { useNow } from '@/lib/useNow'
import { formatElapsed } from '@/lib/time'
import { CopyButton } from '@/ui/CopyButton'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import css from './agents.module.css'
import { KeyChange } from './KeyChange'

const pairCommand = 'slipway agent pair --owner NAME'

function Computer({ computer, onRevoke }: { computer: PairedClient; onRevoke: () => void }) {
  const { t } = useTranslation('agents')
  return (
    <li className={css.device}>
      <Laptop size={15} aria-hidden />
      <div className={css.checkWords}>
        <b>{computer.name}</b> {computer.this ? <Tag variant="filled">{t('clients.this')}</Tag> : null}
        <div className={css.small}>
          {[computer.owner, t(`role.${computer.role as 'user'}`, { defaultValue: computer.role })]
            .filter(Boolean)
            .join(' · ')}{' '}
          · {t('clients.added')} <RelativeTime at={computer.addedAt} />
          {computer.lastSeen ? (
            <>
              {' · '}
              {t('clients.seen')} <RelativeTime at={computer.lastSeen} />
            </>
          ) : null}
        </div>
        <code className={css.key}>{computer.fingerprint}</code>
      </div>
      <Button size="small" danger onClick={onRevoke} aria-label={t('clients.revokeOf', { name: computer.name })}>
        {t('clients.revoke')}
      </Button>
    </li>
  )
}

/** A code that lets one more computer in, how long it is good, and what to type there. */
function Code({ code }: { code: PairCode }) {
  const { t } = useTranslation('agents')
  const now = useNow()
  const left = Date.parse(code.expiresAt) - now
  if (left <= 0) return <p className={css.small}>{t('clients.expired')}</p>
  return (
    <div className={css.code} role="status">
      <div className={css.digits}>
        {code.code}
        <CopyButton text={code.code} label={t('clients.copy')} />
      </div>
      <div className={css.small}>
        {t('clients.codeText', { time: formatElapsed(left) })}
        {code.address ? <code>{code.address}</code> : null}
      </div>
    </div>
  )
}

/** How one more computer is let in where this computer has no login. */
function ByHand() {
  const { t } = useTranslation('agents')
  return (
    <>
      <p className={css.small}>{t('clients.byHand')}</p>
      <div className={css.remedy}>
        <span>{pairCommand}</span>
        <CopyButton text={pairCommand} label={t('clients.copyCommand')} />
      </div>
    </>
  )
}

/**
 * The computers that an agent lets in: take one's access, or let in one more by a code, which needs a login to its
 * machine.
 */
export function PairedClients({ name, reached, login }: { name: string; reached: boolean; login: boolean }) {
  const { t } = useTranslation(['agents', 'common'])
  const client = useQueryClient()
  const { modal, message } = App.useApp()
  const [code, setCode] = useState<PairCode | null>(null)
  const [request, setRequest] = useState<Required<PairRequest>>({ owner: '', role: '' })
  const [busy, setBusy] = useState(false)
  const computers = useQuery({
    queryKey: keys.pairedClients(name),
    queryFn: ({ signal }) => call('paired-clients', { path: { agent: name }, signal }),
    enabled: reached,
    retry: false,
    refetchInterval: code ? 3_000 : false,
  })
  const fail = (error: unknown) => {
    const problem = asProblem(error)
    void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
  }
  const pair = async () => {
    setBusy(true)
    try {
      setCode(
        await call('pair-code', {
          path: { agent: name },
          body: {
            ...(request.owner.trim() ? { owner: request.owner.trim() } : {}),
            ...(request.role ? { role: request.role } : {}),
          },
        }),
      )
    } catch (error) {
      fail(error)
    } finally {
      setBusy(false)
    }
  }
  const revoke = (computer: PairedClient) =>
    void modal.confirm({
      title: t('agents:clients.revokeTitle', { name: computer.name }),
      content: t(computer.this ? 'agents:clients.revokeThis' : 'agents:clients.revokeText'),
      okText: t('agents:clients.revoke'),
      cancelText: t('common:action.cancel'),
      okButtonProps: { danger: true },
      onOk: async () => {
        try {
          await call('client-revoke', { path: { agent: name, fingerprint: computer.fingerprint } })
          await client.invalidateQueries({ queryKey: keys.pairedClients(name) })
        } catch (error) {
          fail(error)
        }
      },
    })
  const problem = computers.error && !computers.data ? asProblem(computers.error) : null
  // An agent that is reached by ssh, or is looked after on its own machine, says so: that is no failure.
  if (problem?.code === 'agent_pair_unavailable' || problem?.code === 'agent_call_unsupported') {
    return (
      <section className={css.section} aria-label={t('agents:clients.title')}>
        <h2 className={css.heading}>{t('agents:clients.title')}</h2>
        <p className={css.small}>
          {problem.message} {problem.hint}
        </p>
      </section>
    )
  }
  return (
    <section className={css.section} aria-label={t('agents:clients.title')}>
      <h2 className={css.heading}>{t('agents:clients.title')}</h2>
      {!reached ? <p className={css.small}>{t('agents:clients.unreached')}</p> : null}
      {problem ? <ErrorState compact problem={problem} onRetry={() => void computers.refetch()} /> : null}
      {reached && computers.isPending ? <Skeleton active title={false} paragraph={{ rows: 2 }} /> : null}
      {computers.data && computers.data.length === 0 ? <p className={css.small}>{t('agents:clients.none')}</p> : null}
      {computers.data && computers.data.length > 0 ? (
        <ul className={css.checks}>
          {computers.data.map((computer) => (
            <Computer key={computer.fingerprint} computer={computer} onRevoke={() => revoke(computer)} />
          ))}
        </ul>
      ) : null}
      {computers.data && !login ? <ByHand /> : null}
      {computers.data && login ? (
        <div className={css.pair}>
          <Input
            aria-label={t('agents:clients.owner')}
            placeholder={t('agents:clients.owner')}
            value={request.owner}
            maxLength={64}
            onChange={(e) => setRequest({ ...request, owner: e.target.value })}
          />
          <Select
            aria-label={t('agents:clients.role')}
            value={request.role}
            options={[
              { value: '', label: t('agents:clients.asUsual') },
              { value: 'user', label: t('agents:role.user') },
              { value: 'admin', label: t('agents:role.admin') },
            ]}
            onChange={(role) => setRequest({ ...request, role })}
          />
          <Button icon={<KeyRound size={14} />} loading={busy} onClick={() => void pair()}>
            {t('agents:clients.pair')}
          </Button>
        </div>
      ) : null}
      {code ? <Code code={code} /> : null}
      {computers.data && login ? <KeyChange name={name} local={false} /> : null}
    </section>
  )
}
