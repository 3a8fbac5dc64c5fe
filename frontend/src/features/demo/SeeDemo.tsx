import { useMutation } from '@tanstack/react-query'
import { App, Button, type ButtonProps } from 'antd'
import { FlaskConical } from 'lucide-react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { openAppTab } from '@/lib/tab'
import { useDemo } from './useDemo'

/** Starts the demo beside what is real, with files and a port of its own, and shows it. In a demo there is none. */
export function SeeDemo(props: Pick<ButtonProps, 'size'>) {
  const { t } = useTranslation('demo')
  const { message, modal } = App.useApp()
  const inDemo = useDemo() !== undefined
  const start = useMutation({
    mutationFn: async () => {
      const tab = openAppTab(t('badge'), t('starting'))
      try {
        const started = await call('demo-start', { body: { window: true } })
        if (started.windowed) tab.close()
        return { ...started, shown: started.windowed || tab.show(started.url) }
      } catch (error) {
        tab.close()
        throw error
      }
    },
    onSuccess: ({ url, shown }) => {
      if (shown) return
      // The browser refused the tab: a press on a link is never refused.
      const asked = modal.info({
        title: t('ready'),
        content: (
          <a href={url} target="_blank" rel="noreferrer" onClick={() => asked.destroy()}>
            {t('open')}
          </a>
        ),
      })
    },
    onError: (error) => {
      const problem = asProblem(error)
      void message.error(`${problem.message} ${problem.hint ?? ''}`.trim())
    },
  })
  if (inDemo) return null
  return (
    <Button {...props} icon={<FlaskConical size={14} />} loading={start.isPending} onClick={() => start.mutate()}>
      {t('see')}
    </Button>
  )
}
