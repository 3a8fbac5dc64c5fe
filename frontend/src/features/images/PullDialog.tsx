import { useQueryClient } from '@tanstack/react-query'
import { Input, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { applyOperation } from '@/api/book'
import { asProblem, type ApiProblem, call } from '@/api/client'

import type { Agent } from '@/api/types.gen'
import { Dialog } from '@/ui/Dialog'
import { ErrorState } from '@/ui/ErrorState'
import css from './images.module.css'

interface PullDialogProps {
  /** What is filled in. */
  image: string
  agent: string
  agents: readonly Agent[]
  onClose: () => void
}

/** Asks for the name of an image and begins to pull it. */
export function PullDialog({ image: first, agent: chosen, agents, onClose }: PullDialogProps) {
  const { t } = useTranslation(['images', 'common'])
  const client = useQueryClient()
  const [image, setImage] = useState(first)
  const [agent, setAgent] = useState(chosen)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const able = image.trim() !== '' && !busy
  const go = async () => {
    if (!able) return
    setBusy(true)
    setProblem(null)
    try {
      applyOperation(client, await call('image-pull', { body: { image: image.trim(), agent } }))
      onClose()
    } catch (error) {
      setProblem(asProblem(error))
      setBusy(false)
    }
  }
  return (
    <Dialog
      width={520}
      title={t('images:dialog.title')}
      okText={t('images:dialog.go')}
      cancelText={t('common:action.cancel')}
      okButtonProps={{ disabled: !able, loading: busy }}
      onOk={() => void go()}
      onCancel={onClose}
    >
      <div className={css.form}>
        <label className={css.field}>
          {t('images:dialog.image')}
          <Input
            autoFocus
            className={css.mono ?? ''}
            value={image}
            placeholder="registry.example.com/team/image:tag"
            spellCheck={false}
            onChange={(event) => setImage(event.target.value)}
            onPressEnter={() => void go()}
          />
          <span className={css.hint}>{t('images:dialog.hint')}</span>
        </label>
        {agents.length > 1 ? (
          <label className={css.field}>
            {t('images:dialog.machine')}
            <Select value={agent} options={agents.map((a) => ({ value: a.name, label: a.name }))} onChange={setAgent} />
          </label>
        ) : null}
        {problem ? <ErrorState compact problem={problem} /> : null}
      </div>
    </Dialog>
  )
}
