import { useQuery, useQueryClient } from '@tanstack/react-query'
import { App, Button, Input, Select, Skeleton, Tag } from 'antd'
import { KeyRound, Laptop } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { PairCode, PairedDevice, PairRequest } from '@/api/types.gen'
import { useNow } from '@/lib/useNow'
import { formatElapsed } from '@/lib/time'
import { CopyButton } from '@/ui/CopyButton'
import { ErrorState } from '@/ui/ErrorState'
import { RelativeTime } from '@/ui/Times'
import css from './agents.module.css'
import { KeyChange } from './KeyChange'

const pairCommand = 'slipway agent pair --owner NAME'

function Device({ device, onRevoke }: { device: PairedDevice; onRevoke: () => void }) {
  const { t } = useTranslation('agents')
  return (
    <li className={css.device}>
      <Laptop size={15} aria-hidden />
      <div className={css.checkWords}>
        <b>{device.name}</b> {device.this ? <Tag variant="filled">{t('devices.this')}</Tag> : null}
        <div className={css.small}>
          {[device.owner, t(`role.${device.role as 'user'}`, { defaultValue: device.role })]
            .filter(Boolean)
            .join(' · ')}{' '}
          · {t('devices.added')} <RelativeTime at={device.addedAt} />
          {device.lastSeen ? (
            <>
              {' · '}
              {t('devices.seen')} <RelativeTime at={device.lastSeen} />
            </>
          ) : null}
        </div>
        <code className={css.key}>{device.fingerprint}</code>
      </div>
      <Button size="small" danger onClick={onRevoke} aria-label={t('devices.revokeOf', { name: device.name })}>
        {t('devices.revoke')}
      </Button>
    </li>
  )
}

/** A code that lets one more device in, how long it is good, and what to type there. */
function Code({ code }: { code: PairCode }) {
  const { t } = useTranslation('agents')
  const now = useNow()
  const left = Date.parse(code.expiresAt) - now
  if (left <= 0) return <p className={css.small}>{t('devices.expired')}</p>
  return (
    <div className={css.code} role="status">
      <div className={css.digits}>
        {code.code}
        <CopyButton text={code.code} label={t('devices.copy')} />
      </div>
      <div className={css.small}>
        {t('devices.codeText', { time: formatElapsed(left) })}
        {code.address ? <code>{code.address}</code> : null}
      </div>
    </div>
  )
}

/** How one more device is let in where this computer has no login. */
function ByHand() {
  const { t } = useTranslation('agents')
  return (
    <>
      <p className={css.small}>{t('devices.byHand')}</p>
      <div className={css.remedy}>
        <span>{pairCommand}</span>
        <CopyButton text={pairCommand} label={t('devices.copyCommand')} />
      </div>
    </>
  )
}

/**
 * The devices that an agent lets in: take one's access, or let in one more by a code, which needs a login to its
 * machine.
 */
export function PairedDevices({ name, reached, login }: { name: string; reached: boolean; login: boolean }) {
  const { t } = useTranslation(['agents', 'common'])
  const client = useQueryClient()
  const { modal, message } = App.useApp()
  const [code, setCode] = useState<PairCode | null>(null)
  const [request, setRequest] = useState<Required<PairRequest>>({ owner: '', role: '' })
  const [busy, setBusy] = useState(false)
  const devices = useQuery({
    queryKey: keys.pairedDevices(name),
    queryFn: ({ signal }) => call('paired-devices', { path: { agent: name }, signal }),
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
  const revoke = (device: PairedDevice) =>
    void modal.confirm({
      title: t('agents:devices.revokeTitle', { name: device.name }),
      content: t(device.this ? 'agents:devices.revokeThis' : 'agents:devices.revokeText'),
      okText: t('agents:devices.revoke'),
      cancelText: t('common:action.cancel'),
      okButtonProps: { danger: true },
      onOk: async () => {
        try {
          await call('device-revoke', { path: { agent: name, fingerprint: device.fingerprint } })
          await client.invalidateQueries({ queryKey: keys.pairedDevices(name) })
        } catch (error) {
          fail(error)
        }
      },
    })
  const problem = devices.error && !devices.data ? asProblem(devices.error) : null
  // An agent that is reached by ssh, or is looked after on its own machine, says so: that is no failure.
  if (problem?.code === 'agent_pair_unavailable' || problem?.code === 'agent_call_unsupported') {
    return (
      <section className={css.section} aria-label={t('agents:devices.title')}>
        <h2 className={css.heading}>{t('agents:devices.title')}</h2>
        <p className={css.small}>
          {problem.message} {problem.hint}
        </p>
      </section>
    )
  }
  return (
    <section className={css.section} aria-label={t('agents:devices.title')}>
      <h2 className={css.heading}>{t('agents:devices.title')}</h2>
      {!reached ? <p className={css.small}>{t('agents:devices.unreached')}</p> : null}
      {problem ? <ErrorState compact problem={problem} onRetry={() => void devices.refetch()} /> : null}
      {reached && devices.isPending ? <Skeleton active title={false} paragraph={{ rows: 2 }} /> : null}
      {devices.data && devices.data.length === 0 ? <p className={css.small}>{t('agents:devices.none')}</p> : null}
      {devices.data && devices.data.length > 0 ? (
        <ul className={css.checks}>
          {devices.data.map((device) => (
            <Device key={device.fingerprint} device={device} onRevoke={() => revoke(device)} />
          ))}
        </ul>
      ) : null}
      {devices.data && !login ? <ByHand /> : null}
      {devices.data && login ? (
        <div className={css.pair}>
          <Input
            aria-label={t('agents:devices.owner')}
            placeholder={t('agents:devices.owner')}
            value={request.owner}
            maxLength={64}
            onChange={(e) => setRequest({ ...request, owner: e.target.value })}
          />
          <Select
            aria-label={t('agents:devices.role')}
            value={request.role}
            options={[
              { value: '', label: t('agents:devices.asUsual') },
              { value: 'user', label: t('agents:role.user') },
              { value: 'admin', label: t('agents:role.admin') },
            ]}
            onChange={(role) => setRequest({ ...request, role })}
          />
          <Button icon={<KeyRound size={14} />} loading={busy} onClick={() => void pair()}>
            {t('agents:devices.pair')}
          </Button>
        </div>
      ) : null}
      {code ? <Code code={code} /> : null}
      {devices.data && login ? <KeyChange name={name} local={false} /> : null}
    </section>
  )
}
