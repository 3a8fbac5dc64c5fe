import { App, Button } from 'antd'
import { ClipboardCopy } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { fetchDiagnostics } from '@/api/calls'
import { asProblem } from '@/api/client'

/** Copies what somebody who helps needs to know, without secrets. */
export function CopyDiagnostics() {
  const { t } = useTranslation('settings')
  const { message } = App.useApp()
  const [busy, setBusy] = useState(false)
  const copy = async () => {
    setBusy(true)
    try {
      await navigator.clipboard.writeText((await fetchDiagnostics()).text)
      void message.success(t('log.copied'))
    } catch (error) {
      void message.error(asProblem(error).message)
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
