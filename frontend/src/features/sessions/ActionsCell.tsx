import { Button, Tooltip } from 'antd'
import {
  CirclePower,
  KeyRound,
  LayoutGrid,
  Play,
  ScrollText,
  SquareTerminal,
  Undo2,
  type LucideIcon,
} from 'lucide-react'
import type { MouseEvent } from 'react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { isContinuable } from '@/api/parking'
import { isLive } from '@/lib/status'
import css from './SessionsPage.module.css'

interface ActionProps {
  icon: LucideIcon
  label: string
  disabled?: boolean
  danger?: boolean
  run: () => void
}

function Action({ icon: Icon, label, disabled, danger, run }: ActionProps) {
  const click = (event: MouseEvent) => {
    event.stopPropagation()
    run()
  }
  return (
    <Tooltip title={label} mouseEnterDelay={0.4}>
      <Button
        type="text"
        size="small"
        danger={danger}
        disabled={disabled}
        aria-label={label}
        icon={<Icon size={15} />}
        onClick={click}
      />
    </Tooltip>
  )
}

export function ActionsCell({ session }: { session: Session }) {
  const { t } = useTranslation()
  const actions = useSessionActions()
  const running = session.status === 'RUNNING' && !session.lastHeard
  if (!isLive(session.status)) {
    return (
      <div className={css.actions}>
        {isContinuable(session) ? (
          <Action icon={Play} label={t('action.continue')} run={() => actions.resume(session.id)} />
        ) : null}
        <Action icon={ScrollText} label={t('action.logs')} run={() => actions.showLogs(session.id)} />
      </div>
    )
  }
  return (
    <div className={css.actions} data-tour="doors">
      {session.type === 'system' ? (
        <Action icon={KeyRound} label={t('action.sftp')} run={() => actions.openSSH(session.id)} />
      ) : (
        <>
          <Action
            icon={LayoutGrid}
            label={t('action.apps')}
            disabled={!running}
            run={() => actions.openApps(session.id)}
          />
          <Action
            icon={SquareTerminal}
            label={t('action.terminal')}
            disabled={!running}
            run={() => actions.openTerminal(session.id)}
          />
        </>
      )}
      {session.ending && !session.ending.error ? (
        <Action icon={Undo2} label={t('ending.undoOf')} run={() => actions.undoTerminate([session.id])} />
      ) : (
        <Action
          icon={CirclePower}
          label={t('action.terminate')}
          disabled={Boolean(session.lastHeard)}
          run={() => actions.terminate([session.id])}
        />
      )}
    </div>
  )
}
