import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Button, Modal, Progress } from 'antd'
import { CirclePause, CircleX, Package, PackageX, Play } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { applyAnswer } from '@/api/book'

import { asProblem, call } from '@/api/client'
import type { EndImage as Made, Session } from '@/api/types.gen'
import { useSessionActions } from '@/lib/actions'
import { formatBytes } from '@/lib/bytes'
import { keptHome } from '@/api/home'
import { isContinuable } from '@/api/parking'
import { hintText, messageText } from '@/lib/phrases'
import { launchAddress } from '@/lib/image'
import { CopyButton } from '@/ui/CopyButton'
import { ErrorState } from '@/ui/ErrorState'
import css from './SessionDrawer.module.css'

/** What becomes of the image that is made of a session as it ends. */
export function EndImage({ session }: { session: Session }) {
  const image = session.endImage
  if (!image) return null
  switch (image.state) {
    case 'running':
      return <Making session={session} image={image} />
    case 'failed':
      return <Failed session={session} image={image} />
    default:
      return isContinuable(session) ? <Parked session={session} /> : <Over image={image} />
  }
}

function Making({ session, image }: { session: Session; image: Made }) {
  const { t } = useTranslation('session')
  const actions = useSessionActions()
  const text = image.size > 0 ? t('endImage.copies', { bytes: formatBytes(image.size) }) : t('endImage.measures')
  return (
    <div className={css.notice} role="status">
      <Package size={16} aria-hidden />
      <div className={css.noticeBody}>
        <div className={css.noticeTitle}>{t('endImage.making', { name: image.name })}</div>
        <div className={css.pullBar}>
          <Progress
            percent={100}
            status="active"
            showInfo={false}
            size="small"
            aria-label={t('endImage.making', { name: image.name })}
          />
        </div>
        <div className={css.noticeText}>
          {text} {t('endImage.leftOut')}
        </div>
        <div className={css.noticeButtons}>
          <Button
            size="small"
            disabled={Boolean(session.lastHeard)}
            onClick={() => actions.terminate([session.id], true)}
          >
            {t('endImage.without')}
          </Button>
        </div>
      </div>
    </div>
  )
}

function Failed({ session, image }: { session: Session; image: Made }) {
  const { t } = useTranslation('session')
  const actions = useSessionActions()
  const [dropping, setDropping] = useState(false)
  const away = Boolean(session.lastHeard)
  return (
    <div className={`${css.notice} ${css.noticeBad}`} role="alert">
      <CircleX size={16} aria-hidden />
      <div className={css.noticeBody}>
        <div className={css.noticeTitle}>{t(image.kept ? 'endImage.failedKept' : 'endImage.failed')}</div>
        <div className={css.noticeText}>
          {image.error ? `${messageText(image.error)} ${hintText(image.error)}` : ''}
        </div>
        {image.error ? <code className={`${css.mono} ${css.dim}`}>{image.error.code}</code> : null}
        {image.kept ? (
          <div className={css.noticeButtons}>
            <Button size="small" type="primary" disabled={away} onClick={() => actions.commit(session.id)}>
              {t('endImage.again')}
            </Button>
            <Button size="small" danger disabled={away} onClick={() => setDropping(true)}>
              {t('endImage.drop')}
            </Button>
          </div>
        ) : null}
      </div>
      {dropping ? <DropDialog session={session} onClose={() => setDropping(false)} /> : null}
    </div>
  )
}

function DropDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const { t } = useTranslation(['session', 'common'])
  const client = useQueryClient()
  const drop = useMutation({
    mutationFn: () => call('terminate', { path: { id: session.id }, body: { forced: true } }),
    onSuccess: (answer) => {
      applyAnswer(client, answer)
      onClose()
    },
  })
  return (
    <Modal
      open
      width={440}
      title={t('session:endImage.dropTitle', { name: session.name })}
      okText={t('session:endImage.drop')}
      okButtonProps={{ danger: true, type: 'primary' }}
      cancelText={t('common:action.cancel')}
      confirmLoading={drop.isPending}
      onOk={() => drop.mutate()}
      onCancel={onClose}
    >
      <p>{t(keptHome(session) && !session.parked ? 'session:endImage.dropTextKept' : 'session:endImage.dropText')}</p>
      {drop.error ? <ErrorState compact problem={asProblem(drop.error)} /> : null}
    </Modal>
  )
}

/** It was stopped and kept. */
function Parked({ session }: { session: Session }) {
  const { t } = useTranslation(['session', 'common'])
  const actions = useSessionActions()
  return (
    <div className={css.notice}>
      <CirclePause size={16} aria-hidden />
      <div className={css.noticeBody}>
        <div className={css.noticeTitle}>{t('session:parked.title')}</div>
        <div className={css.noticeText}>{t('session:parked.text', { folder: keptHome(session)?.name })}</div>
        <div className={css.copyable}>
          <code className={css.mono}>{session.endImage?.ref}</code>
          <CopyButton text={session.endImage?.ref ?? ''} label={t('session:commit.copy')} />
        </div>
        <div className={css.noticeButtons}>
          <Button size="small" type="primary" icon={<Play size={14} />} onClick={() => actions.resume(session.id)}>
            {t('common:action.continue')}
          </Button>
        </div>
      </div>
    </div>
  )
}

/** The image is there, or there is none and nothing to make one of. */
function Over({ image }: { image: Made }) {
  const { t } = useTranslation('session')
  const done = image.state === 'done'
  const Icon = done ? Package : PackageX
  return (
    <div className={css.notice}>
      <Icon size={16} aria-hidden />
      <div className={css.noticeBody}>
        <div className={css.noticeTitle}>{t(done ? 'endImage.done' : 'endImage.none')}</div>
        {done ? (
          <div className={css.copyable}>
            <code className={css.mono}>{image.ref}</code>
            <CopyButton text={image.ref} label={t('commit.copy')} />
            <Link to={launchAddress(image.ref)}>{t('commit.launch')}</Link>
          </div>
        ) : (
          <div className={css.noticeText}>{t('endImage.noneText')}</div>
        )}
      </div>
    </div>
  )
}
