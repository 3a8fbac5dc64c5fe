import { useQueryClient } from '@tanstack/react-query'
import { App, Button } from 'antd'
import { RefreshCcw } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { keys } from '@/api/keys'
import type { KeyRotation } from '@/api/types.gen'
import css from './agents.module.css'

/** Changes the key of an agent, or of this computer; whoever is paired follows by the old one's signature. */
export function KeyChange({ name, local }: { name: string; local: boolean }) {
  const { t } = useTranslation(['agents', 'common'])
  const client = useQueryClient()
  const { modal, message } = App.useApp()
  const [changed, setChanged] = useState<KeyRotation | null>(null)
  const change = () =>
    void modal.confirm({
      title: t(local ? 'agents:rotate.titleHere' : 'agents:rotate.title', { name }),
      content: t(local ? 'agents:rotate.textHere' : 'agents:rotate.text'),
      okText: t('agents:rotate.go'),
      cancelText: t('common:action.cancel'),
      onOk: async () => {
        try {
          setChanged(await (local ? call('key-rotate') : call('agent-rotate', { path: { agent: name } })))
          await client.invalidateQueries({ queryKey: keys.pairedClients(name) })
        } catch (error) {
          const problem = asProblem(error)
          void message.error([problem.message, problem.hint].filter(Boolean).join(' '))
        }
      },
    })
  return (
    <div className={css.rotate}>
      <p className={css.small}>{t(local ? 'agents:rotate.whyHere' : 'agents:rotate.why')}</p>
      <Button size="small" icon={<RefreshCcw size={14} />} onClick={change}>
        {t('agents:rotate.button')}
      </Button>
      {changed ? (
        <div className={css.rotated} role="status">
          {t('agents:rotate.done')} <code className={css.key}>{changed.fingerprint}</code>
          {changed.told.length > 0 ? <div>{t('agents:rotate.told', { names: changed.told.join(', ') })}</div> : null}
          {changed.later.length > 0 ? <div>{t('agents:rotate.later', { names: changed.later.join(', ') })}</div> : null}
        </div>
      ) : null}
    </div>
  )
}
