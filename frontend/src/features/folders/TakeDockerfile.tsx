import { App, Button } from 'antd'
import { FilePlus } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { inside, writeText } from '@/api/files'

interface TakeDockerfileProps {
  folder: string
  /** Of the project in the folder. */
  dir: string
  text: string
  onTaken: (file: string) => void
}

/** Saves a generated Dockerfile in the project, which from then on decides, and never over one that is there. */
export function TakeDockerfile({ folder, dir, text, onTaken }: TakeDockerfileProps) {
  const { t } = useTranslation('folders')
  const { message } = App.useApp()
  const [busy, setBusy] = useState(false)
  const take = async () => {
    setBusy(true)
    try {
      await writeText({ folder }, inside(encodeURIComponent(dir), 'Dockerfile'), text, { conflict: 'fail' })
      void message.success(t('project.taken'))
      onTaken('Dockerfile')
    } catch (error) {
      const { message: said, hint } = asProblem(error)
      void message.error([said, hint].filter(Boolean).join(' '))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button
      size="small"
      icon={<FilePlus size={14} />}
      loading={busy}
      title={t('project.takeHint')}
      onClick={() => void take()}
    >
      {t('project.take')}
    </Button>
  )
}
