import { Button, Dropdown, Popover } from 'antd'
import { ArrowUpDown, CirclePower, ShieldCheck, Tags } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { keepHours } from '@/ui/IdleParts'
import { ListBar } from '@/ui/ListPage'
import { PriorityForm } from './queueCells'
import type { IsMine } from './filter'
import { TagForm } from './TagForm'

interface BulkBarProps {
  sessions: Session[]
  isMine: IsMine
  known: string[]
  onClear: () => void
}

/** Takes the place of the toolbar while rows are selected. */
export function BulkBar({ sessions, isMine, known, onClear }: BulkBarProps) {
  const { t } = useTranslation(['sessions', 'common'])
  const actions = useSessionActions()
  const [open, setOpen] = useState(false)
  const [tagging, setTagging] = useState(false)
  const tag = (add: string[], remove: string[]) => {
    setTagging(false)
    actions.setTags(sessions, add, remove)
  }
  const selected = sessions.map((s) => s.id)
  const others = sessions.filter((s) => !isMine(s)).length
  const waiting = sessions.filter((s) => s.status === 'PENDING')
  const judged = sessions.filter((s) => s.status === 'RUNNING' && s.idle.length > 0).map((s) => s.id)
  const set = (priority: number) => {
    setOpen(false)
    actions.setPriority(
      waiting.map((s) => s.id),
      priority,
    )
  }
  return (
    <ListBar selected>
      <strong>{t('sessions:selected', { count: selected.length })}</strong>
      {others > 0 ? <span>{t('sessions:ofOthers', { count: others })}</span> : null}
      <Button size="small" danger icon={<CirclePower size={14} />} onClick={() => actions.terminate(selected)}>
        {t('common:action.terminate')}
      </Button>
      {waiting.length > 0 ? (
        <Popover
          open={open}
          onOpenChange={setOpen}
          trigger={['click']}
          arrow={false}
          destroyOnHidden
          content={<PriorityForm sessions={waiting} onSet={set} />}
        >
          <Button size="small" icon={<ArrowUpDown size={14} />}>
            {t('sessions:priority.bulk', { count: waiting.length })}
          </Button>
        </Popover>
      ) : null}
      {judged.length > 0 ? (
        <Dropdown
          trigger={['click']}
          menu={{
            items: keepHours.map((hours) => ({
              key: hours,
              label: t('common:idle.keepHours', { count: hours }),
              onClick: () => actions.keep(judged, hours),
            })),
          }}
        >
          <Button size="small" icon={<ShieldCheck size={14} />}>
            {t('common:idle.keep')}
          </Button>
        </Dropdown>
      ) : null}
      <Popover
        open={tagging}
        onOpenChange={setTagging}
        trigger={['click']}
        arrow={false}
        destroyOnHidden
        content={<TagForm sessions={sessions} known={known} onSet={tag} onCancel={() => setTagging(false)} />}
      >
        <Button size="small" icon={<Tags size={14} />}>
          {t('sessions:tags.edit')}
        </Button>
      </Popover>
      <Button size="small" type="text" onClick={onClear}>
        {t('sessions:clearSelection')}
      </Button>
    </ListBar>
  )
}
