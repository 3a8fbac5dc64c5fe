import { App, Button } from 'antd'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useRevokeToken } from '@/api/services'
import type { Service, ServiceToken } from '@/api/types.gen'
import { now } from '@/lib/now'
import { EmptyState } from '@/ui/EmptyState'
import { RelativeTime } from '@/ui/Times'
import css from './services.module.css'
import { TokenDialog } from './TokenDialog'

/** The tokens with which clients use a service: who has one, until when and how much they may ask. */
export function Tokens({ service }: { service: Service }) {
  const { t } = useTranslation(['services', 'common'])
  const { modal, message } = App.useApp()
  const revoke = useRevokeToken(service)
  const [adding, setAdding] = useState(false)
  const ask = (token: ServiceToken) =>
    void modal.confirm({
      title: t('services:token.revokeTitle', { name: token.name }),
      content: t('services:token.revokeText'),
      okText: t('services:token.revoke'),
      okButtonProps: { danger: true },
      cancelText: t('common:action.cancel'),
      onOk: () =>
        revoke.mutateAsync(token.id).catch((error: unknown) => {
          const problem = asProblem(error)
          void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
        }),
    })
  const add = (
    <Button icon={<Plus size={14} />} onClick={() => setAdding(true)}>
      {t('services:token.new')}
    </Button>
  )
  return (
    <div className={css.parts}>
      {service.tokens.length === 0 ? (
        <EmptyState
          icon={KeyRound}
          title={t('services:token.none')}
          text={t(service.public ? 'services:token.nonePublic' : 'services:token.noneText')}
        >
          {add}
        </EmptyState>
      ) : (
        <>
          <div className={css.sectionHead}>
            <p className={css.small}>{t(service.public ? 'services:token.public' : 'services:token.text')}</p>
            {add}
          </div>
          <TokenTable tokens={service.tokens} onRevoke={ask} />
        </>
      )}
      {adding ? <TokenDialog service={service} onClose={() => setAdding(false)} /> : null}
    </div>
  )
}

function TokenTable({ tokens, onRevoke }: { tokens: ServiceToken[]; onRevoke: (token: ServiceToken) => void }) {
  const { t } = useTranslation('services')
  return (
    <table className={css.grid}>
      <thead>
        <tr>
          <th>{t('token.name')}</th>
          <th>{t('token.created')}</th>
          <th>{t('token.expires')}</th>
          <th>{t('token.limits')}</th>
          <th>
            <span className="unseen">{t('token.revoke')}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {tokens.map((token) => (
          <tr key={token.id}>
            <td className={css.strong}>{token.name}</td>
            <td>
              <RelativeTime at={token.createdAt} />
            </td>
            <td>
              <Expiry token={token} />
            </td>
            <td className="num">
              {[
                token.perMinute ? t('token.perMinuteOf', { count: token.perMinute }) : '',
                token.concurrent ? t('token.concurrentOf', { count: token.concurrent }) : '',
              ]
                .filter(Boolean)
                .join(' · ') || <span className={css.dim}>{t('token.unlimited')}</span>}
            </td>
            <td className={css.right}>
              <Button
                size="small"
                danger
                aria-label={t('token.revokeOne', { name: token.name })}
                onClick={() => onRevoke(token)}
              >
                {t('token.revoke')}
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Expiry({ token }: { token: ServiceToken }) {
  const { t } = useTranslation('services')
  if (!token.expiresAt) return <span className={css.dim}>{t('token.never')}</span>
  if (Date.parse(token.expiresAt) < now()) return <span className={css.bad}>{t('token.expired')}</span>
  return <RelativeTime at={token.expiresAt} ahead />
}
