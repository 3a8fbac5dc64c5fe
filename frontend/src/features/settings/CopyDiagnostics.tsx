import { App, Button } from 'antd'
import { ClipboardCopy } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import { useLeaving } from '@/lib/useLeaving'

/** Copies what somebody who helps needs to know, without secrets. */
export function CopyDiagnostics() {
  const { t } = useTranslation('settings')
  const { message } = App.useApp()
  const [busy, setBusy] = useState(false)
  const leaving = useLeaving()
  const copy = async () => {
    const signal = leaving() // it looks at the machine, which takes a while
    setBusy(true)
    try {
      await navigator.clipboard.writeText((await call('diagnostics', { signal })).text)
      void message.success(t('log.copied'))
    } catch (error) {
      if (!signal?.aborted) void message.error(asProblem(error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button size="small" icon={<ClipboardCopy size={13} />} loading={busy} onClick={() => void copy()}>
      {t('log.copy')}
    </Button>
  )
}
