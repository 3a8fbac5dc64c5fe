import { Alert, Radio } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Agent } from '@/api/types.gen'
import { Dialog } from '@/ui/Dialog'
import css from './agents.module.css'
import { useAgentActions } from './useAgentActions'

/** Asks how an agent is to be removed, and says what becomes of its sessions. */
export function RemoveDialog({ agent, reached, onClose }: { agent: Agent; reached: boolean; onClose: () => void }) {
  const { t } = useTranslation(['agents', 'common'])
  const [uninstall, setUninstall] = useState(false)
  const [busy, setBusy] = useState(false)
  const { remove } = useAgentActions(agent.name)
  const go = async () => {
    setBusy(true)
    const started = await remove(uninstall)
    setBusy(false)
    if (started) onClose()
  }
  // Over TLS nobody may end what was set up there by its own person.
  const canUninstall =
    agent.connection.transport === 'ssh' || agent.address === '' || !/^(slipway|wss):/.test(agent.address)
  return (
    <Dialog
      title={t('agents:remove.title', { name: agent.name })}
      okText={t(uninstall ? 'agents:remove.goUninstall' : 'agents:remove.go')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ danger: true, loading: busy }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      <Radio.Group
        className={css.choices ?? ''}
        value={uninstall}
        onChange={(e) => setUninstall(Boolean(e.target.value))}
      >
        <Radio value={false}>
          <b>{t('agents:remove.forget')}</b>
          <div className={css.choiceText}>{t('agents:remove.forgetText', { count: agent.live })}</div>
        </Radio>
        {canUninstall ? (
          <Radio value={true} disabled={!reached}>
            <b>{t('agents:remove.uninstall')}</b>
            <div className={css.choiceText}>{t('agents:remove.uninstallText', { count: agent.live })}</div>
          </Radio>
        ) : null}
      </Radio.Group>
      {uninstall && agent.live > 0 ? (
        <Alert type="warning" showIcon title={t('agents:remove.ends', { count: agent.live })} />
      ) : null}
    </Dialog>
  )
}
