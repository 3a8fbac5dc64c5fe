import { Alert, Button, Skeleton } from 'antd'
import { CodeXml, PlugZap } from 'lucide-react'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { useSession } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { SSHAccess } from '@/api/types.gen'
import { isLive } from '@/lib/status'
import { useLeaving } from '@/lib/useLeaving'
import { CopyButton } from '@/ui/CopyButton'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import { StatusBadge } from '@/ui/StatusBadge'
import css from './SSHModal.module.css'

export interface SSHModalProps {
  sessionId: string
  onClose: () => void
}

/** How one's own ssh, scp, sftp, rsync and editor reach a session, and a button that tries it. */
export function SSHModal({ sessionId, onClose }: SSHModalProps) {
  const { t } = useTranslation('apps')
  const { session } = useSession(sessionId)
  const system = session?.type === 'system'
  const query = useQuery({
    queryKey: keys.ssh(sessionId),
    queryFn: ({ signal }) => call('ssh-access', { path: { id: sessionId }, signal }),
    staleTime: 0,
    enabled: session?.status === 'RUNNING',
    retry: false,
  })
  return (
    <Dialog
      title={session ? t(system ? 'ssh.sftpTitle' : 'ssh.titleOf', { name: session.name }) : t('ssh.title')}
      width={640}
      footer={null}
      onCancel={onClose}
    >
      <div className={css.body}>
        {system ? <p className={css.note}>{t('ssh.system')}</p> : null}
        {session && session.status !== 'RUNNING' ? <StatusBadge status={session.status} /> : null}
        {query.isPending && (!session || isLive(session.status)) ? <Skeleton active /> : null}
        {query.isError ? <ErrorState problem={asProblem(query.error)} onRetry={() => void query.refetch()} /> : null}
        {query.data ? <Access sessionId={sessionId} access={query.data} /> : null}
      </div>
    </Dialog>
  )
}

function Access({ sessionId, access }: { sessionId: string; access: SSHAccess }) {
  const { t } = useTranslation('apps')
  return (
    <>
      <Setup sessionId={sessionId} installed={access.installed} />
      <dl className={css.commands}>
        {access.commands.map((command) => (
          <div key={command.name} className={css.command} data-command={command.name}>
            <dt>{t(`ssh.command.${command.name as 'ssh'}`, { defaultValue: command.name })}</dt>
            <dd>
              <code className={css.line}>{command.line}</code>
              <CopyButton text={command.line} label={t('ssh.copy', { name: command.name })} />
            </dd>
          </div>
        ))}
      </dl>
      <p className={css.note}>
        {t('ssh.hostKey')} <code>{access.fingerprint}</code>
      </p>
      <Trial sessionId={sessionId} editor={access.editor} />
    </>
  )
}

function Setup({ sessionId, installed }: { sessionId: string; installed: boolean }) {
  const { t } = useTranslation('apps')
  const client = useQueryClient()
  const change = useMutation({
    mutationFn: (installed: boolean) => call('ssh-update', { body: { installed } }),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.ssh(sessionId) }),
  })
  return (
    <div className={css.setup}>
      <span>{t(installed ? 'ssh.installed' : 'ssh.notInstalled')}</span>
      <Button size="small" loading={change.isPending} onClick={() => change.mutate(!installed)}>
        {t(installed ? 'ssh.remove' : 'ssh.install')}
      </Button>
      {change.isError ? <ErrorState compact problem={asProblem(change.error)} /> : null}
    </div>
  )
}

function Trial({ sessionId, editor }: { sessionId: string; editor?: string | undefined }) {
  const { t } = useTranslation('apps')
  const leaving = useLeaving()
  const trial = useMutation({ mutationFn: () => call('ssh-test', { path: { id: sessionId }, signal: leaving() }) })
  const problem = trial.isError ? asProblem(trial.error) : trial.data?.problem
  return (
    <>
      <div className={css.actions}>
        <Button icon={<PlugZap size={14} aria-hidden />} loading={trial.isPending} onClick={() => trial.mutate()}>
          {t('ssh.test')}
        </Button>
        {editor ? (
          <Button icon={<CodeXml size={14} aria-hidden />} href={editor}>
            {t('ssh.editor')}
          </Button>
        ) : null}
      </div>
      <div aria-live="polite">
        {trial.data?.ok && !trial.isPending ? (
          <Alert
            type="success"
            showIcon
            title={t(trial.data.own ? 'ssh.worksOwn' : 'ssh.works', { ms: trial.data.elapsedMs })}
          />
        ) : null}
        {problem && !trial.isPending ? <ErrorState compact problem={problem} /> : null}
      </div>
    </>
  )
}
