import { App, Button, Skeleton } from 'antd'
import { KeyRound, Package, Pencil, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { useDeleteSecret, useSecrets, useSetSecret } from '@/api/secrets'
import type { Secret, SecretKind } from '@/api/types.gen'
import { ErrorState } from '@/ui/ErrorState'
import { SecretDialog } from '@/ui/SecretDialog'
import { RelativeTime } from '@/ui/Times'
import css from './settings.module.css'

/** The secrets of one kind: which there are and where they are kept, never their values. */
export function Secrets({ kind }: { kind: SecretKind }) {
  const { t } = useTranslation('secrets')
  const secrets = useSecrets()
  const save = useSetSecret()
  const [asking, setAsking] = useState<Secret | 'new' | null>(null)
  const ask = (one: Secret | 'new') => {
    save.reset()
    setAsking(one)
  }
  const mine = secrets.data?.filter((one) => one.kind === kind)
  return (
    <section className={css.section} aria-label={t(`${kind}.title`)}>
      <div className={css.sectionHead}>
        <h2>{t(`${kind}.title`)}</h2>
        <Button size="small" type="text" icon={<Plus size={13} />} onClick={() => ask('new')}>
          {t(`${kind}.add`)}
        </Button>
      </div>
      <p className={css.note}>{t(`${kind}.text`)}</p>
      <div className={css.card}>
        {secrets.error && !mine ? (
          <ErrorState compact problem={asProblem(secrets.error)} onRetry={() => void secrets.refetch()} />
        ) : null}
        {secrets.isPending ? <Skeleton active className={css.pad ?? ''} paragraph={{ rows: 1 }} title={false} /> : null}
        {mine?.length === 0 ? <div className={`${css.pad} ${css.text}`}>{t(`${kind}.none`)}</div> : null}
        {mine?.map((one) => (
          <SecretRow key={one.name} secret={one} onReplace={() => ask(one)} />
        ))}
      </div>
      {asking ? (
        <SecretDialog
          kind={kind}
          {...(asking === 'new' ? {} : { replaces: asking })}
          busy={save.isPending}
          problem={save.error && asProblem(save.error)}
          onSave={(content) => save.mutate(content, { onSuccess: () => setAsking(null) })}
          onClose={() => setAsking(null)}
        />
      ) : null}
    </section>
  )
}

function SecretRow({ secret, onReplace }: { secret: Secret; onReplace: () => void }) {
  const { t } = useTranslation(['secrets', 'common'])
  const { modal, message } = App.useApp()
  const remove = useDeleteSecret()
  const { name, user } = secret
  const Icon = secret.kind === 'registry' ? Package : KeyRound
  const ask = () =>
    void modal.confirm({
      title: t('secrets:deleteTitle', { name }),
      content: t(`secrets:${secret.kind}.deleteText`),
      okText: t('secrets:delete'),
      okButtonProps: { danger: true },
      cancelText: t('common:action.cancel'),
      onOk: () =>
        remove.mutateAsync(secret).catch((error: unknown) => {
          const problem = asProblem(error)
          void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
        }),
    })
  return (
    <div className={`${css.row} ${css.secret}`} data-secret={name}>
      <Icon size={15} aria-hidden />
      <div className={css.words}>
        <div className={css.label}>
          <code>{name}</code>
        </div>
        <div className={css.text}>
          {user ? `${user} · ` : ''}
          {t(secret.kept === 'keyring' ? 'secrets:inKeyring' : 'secrets:inFile')} ·{' '}
          <RelativeTime at={secret.updatedAt} />
        </div>
      </div>
      <div className={css.control}>
        <Button
          size="small"
          icon={<Pencil size={14} />}
          aria-label={t('secrets:replaceTitle', { name })}
          onClick={onReplace}
        />
        <Button size="small" icon={<Trash2 size={14} />} aria-label={t('secrets:deleteOne', { name })} onClick={ask} />
      </div>
    </div>
  )
}
