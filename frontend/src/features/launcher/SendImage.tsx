import { useQueryClient } from '@tanstack/react-query'
import { Button } from 'antd'
import { Send } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call } from '@/api/client'

import { useAgents, useOperations } from '@/api/hooks'
import { keys } from '@/api/keys'
import type { Image, Operation } from '@/api/types.gen'
import { useOperationActions, useStartOperation } from '@/api/useOperation'
import { formatBytes } from '@/lib/bytes'
import { isRunning } from '@/lib/operation'
import { OperationView } from '@/ui/OperationView'
import css from './launcher.module.css'
import { imageElsewhere } from './images'

interface SendImageProps {
  image: string
  to: string
  images: readonly Image[]
  /** The image is there under another name: of a person who is no admin it gets one of their own. */
  onArrived: (image: string) => void
}

/** Where another machine has an image that the chosen one lacks: offers to send it there, and shows how far that is. */
export function SendImage({ image, to, images, onArrived }: SendImageProps) {
  const { t } = useTranslation('launcher')
  const agents = useAgents().data ?? []
  const start = useStartOperation()
  const here = agents.find((a) => a.local)?.name ?? 'local'
  const holder = imageElsewhere(image, images, to, here)
  const [started, setStarted] = useState({ operation: '', image: '' })
  const operations = useOperations().data
  const sending = operations?.find(
    (o) => o.kind === 'image-send' && (o.subject === to || o.agent === to) && (isRunning(o) || o.state === 'failed'),
  )
  const arrived = operations?.find((o) => o.id === started.operation && o.state === 'done')?.image
  const asked = started.image === image.trim()
  useEffect(() => {
    if (arrived && asked && arrived !== started.image) onArrived(arrived)
  }, [arrived, asked, started, onArrived])
  const send = async (from: string) => {
    const operation = await start(() => call('image-send', { body: { image: image.trim(), from, to } }))
    if (operation) setStarted({ operation: operation.id, image: image.trim() })
  }
  if (!holder) return null
  return (
    <div className={css.sending}>
      {sending && isRunning(sending) ? null : (
        <div className={css.fact}>
          <Send size={14} aria-hidden />
          {t(holder.agent === here ? 'image.isHere' : 'image.isOn', {
            agent: holder.agent,
            amount: formatBytes(holder.size),
          })}
          <Button size="small" onClick={() => void send(holder.agent)}>
            {t(holder.agent === here ? 'image.send' : 'image.sendFrom', { agent: holder.agent })}
          </Button>
        </div>
      )}
      {sending ? <Sending operation={sending} /> : null}
    </div>
  )
}

function Sending({ operation }: { operation: Operation }) {
  const client = useQueryClient()
  const actions = useOperationActions(operation.id)
  // Once it has arrived the image is there: the list of images is asked for anew.
  useEffect(() => () => void client.invalidateQueries({ queryKey: keys.images }), [client])
  return <OperationView operation={operation} {...actions} />
}
