import { Button, Tooltip } from 'antd'
import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'

interface CopyButtonProps {
  text: string
  /** What is copied, for the screen reader: "Copy session id". */
  label?: string
}

/** Puts text on the clipboard and says so for a moment. */
export function CopyButton({ text, label }: CopyButtonProps) {
  const { t } = useTranslation()
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1500)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = () => {
    void navigator.clipboard.writeText(text).then(() => setCopied(true))
  }
  const name = label ?? t('action.copy')
  return (
    <Tooltip title={copied ? t('action.copied') : name}>
      <Button
        type="text"
        size="small"
        aria-label={name}
        icon={copied ? <Check size={13} /> : <Copy size={13} />}
        onClick={copy}
      />
    </Tooltip>
  )
}
