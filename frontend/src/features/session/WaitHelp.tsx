import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { App, Button, Popover, Tooltip } from 'antd'
import { Bell, BellRing, ChevronsDown } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyAnswer } from '@/api/book'

import { asProblem, call } from '@/api/client'
import { useDevices } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { Accelerator, Session, SessionUpdate } from '@/api/types.gen'
import { askForNotices } from '@/lib/browserNotice'
import { useAcceleratorText } from '@/ui/useAcceleratorText'
import css from './SessionDrawer.module.css'
import { smallerRequests, waitsForDevices } from './smaller'

/** Changes a session, and says which failed. */
function useChange(session: Session, onDone: (change: SessionUpdate) => void) {
  const { t } = useTranslation('session')
  const { message } = App.useApp()
  const client = useQueryClient()
  return useMutation({
    mutationFn: (body: SessionUpdate) => call('session-update', { path: { id: session.id }, body }),
    onSuccess: (answer, change) => {
      applyAnswer(client, answer)
      onDone(change)
    },
    onError: (error) => {
      const { message: text, hint } = asProblem(error)
      void message.error([`${t('help.failed')}.`, text, hint].filter(Boolean).join(' '))
    },
  })
}

/** Lets a session that waits ask for less of the devices. It keeps its place. */
function UseLess({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const { message } = App.useApp()
  const board = useDevices().data?.find((one) => one.agent === session.agent)
  const textOf = useAcceleratorText()
  const [open, setOpen] = useState(false)
  const change = useChange(session, ({ accelerator }) => {
    setOpen(false)
    void message.success(t('help.changed', { name: session.name, what: textOf(accelerator as Accelerator) }))
  })
  const choices = smallerRequests(session, board?.devices ?? [], board?.quantum ?? 100)
  if (choices.length === 0 || !waitsForDevices(session)) return null
  const list = (
    <div className={css.smaller}>
      <strong>{t('help.smallerTitle')}</strong>
      <span className={css.dim}>{t('help.smallerText')}</span>
      {choices.map(({ request, free }) => (
        <Button
          key={textOf(request)}
          size="small"
          disabled={change.isPending}
          onClick={() => change.mutate({ accelerator: request })}
        >
          {textOf(request)}
          {free ? <span className={css.good}>{t('help.free')}</span> : null}
        </Button>
      ))}
    </div>
  )
  return (
    <Popover content={list} trigger="click" placement="bottomLeft" arrow={false} open={open} onOpenChange={setOpen}>
      <Button size="small" icon={<ChevronsDown size={14} />}>
        {t('help.smaller')}
      </Button>
    </Popover>
  )
}

/** Notifies of the start of a session, whatever the settings say of notifications. */
function RemindMe({ session }: { session: Session }) {
  const { t } = useTranslation('session')
  const { message } = App.useApp()
  const on = session.reminder ?? false
  const notifier = useQuery({ queryKey: keys.notifier, queryFn: ({ signal }) => call('notifier', { signal }) })
  const change = useChange(session, () => {})
  const ask = async () => {
    // The browser asks the person only while it handles the click.
    const asked = on || notifier.data?.desktop ? 'granted' : await askForNotices()
    change.mutate({ reminder: !on })
    if (asked !== 'granted') void message.warning(t('help.blocked'))
  }
  return (
    <Tooltip title={t(on ? 'help.unremindTip' : 'help.remindTip')} mouseEnterDelay={0.4}>
      <Button
        size="small"
        aria-pressed={on}
        loading={change.isPending}
        icon={on ? <BellRing size={14} /> : <Bell size={14} />}
        onClick={() => void ask()}
      >
        {t(on ? 'help.reminding' : 'help.remind')}
      </Button>
    </Tooltip>
  )
}

/** What would help a session that waits. */
export function WaitHelp({ session }: { session: Session }) {
  if (session.lastHeard) return null
  return (
    <div className={css.noticeButtons}>
      <UseLess session={session} />
      <RemindMe session={session} />
    </div>
  )
}
