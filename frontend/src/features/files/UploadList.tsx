import { Button, Progress } from 'antd'
import { Check, CircleAlert, RotateCw, X } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { type FilePlace, placeKey } from '@/api/files'
import { formatBytes } from '@/lib/bytes'
import { ConflictDialog } from './ConflictDialog'
import css from './files.module.css'
import { visible } from './paths'
import type { UploadItem } from './uploads'
import { useUploads } from './useFiles'

/** What is being brought to a place, each with its progress, and what stands in its way. */
export function UploadList({ place }: { place: FilePlace }) {
  const { t } = useTranslation(['files', 'common'])
  const { items, uploads } = useUploads()
  const here = items.filter((item) => placeKey(item.place) === placeKey(place))
  if (here.length === 0) return null
  const under = here.filter((i) => i.status === 'sending' || i.status === 'waiting' || i.status === 'asking')
  const total = here.reduce((sum, i) => sum + i.size, 0)
  const sent = here.reduce((sum, i) => sum + (i.status === 'done' ? i.size : i.sent), 0)
  const asking = here.find((i) => i.status === 'asking')
  const done = here.filter((i) => i.status === 'done').length
  const failed = here.filter((i) => i.status === 'failed').length
  // What needs somebody comes first, and what is done last.
  const rank = { failed: 0, asking: 0, sending: 1, waiting: 2, skipped: 3, cancelled: 3, done: 4 }
  const shown = here.toSorted((a, b) => rank[a.status] - rank[b.status]).slice(0, 50)
  return (
    <section className={css.uploads} aria-label={t('files:uploads')}>
      <div className={css.uploadsHead} role="status">
        <b>
          {under.length > 0 ? t('files:uploading', { done, count: here.length }) : t('files:uploaded', { count: done })}
        </b>
        {failed > 0 ? <span className={css.bad}>{t('files:uploadsFailed', { count: failed })}</span> : null}
        <span className={css.count}>
          {formatBytes(sent)} / {formatBytes(total)}
        </span>
        {under.length > 0 ? (
          <Button size="small" onClick={() => under.forEach((i) => uploads.cancel(i.id))}>
            {t('files:cancelAll')}
          </Button>
        ) : (
          <Button
            size="small"
            type="text"
            aria-label={t('common:action.close')}
            icon={<X size={14} />}
            onClick={() => uploads.clear()}
          />
        )}
      </div>
      <ul>
        {shown.map((item) => (
          <Line key={item.id} item={item} />
        ))}
      </ul>
      {asking ? <ConflictDialog key={asking.id} item={asking} several={uploads.several(asking)} /> : null}
    </section>
  )
}

function Line({ item }: { item: UploadItem }) {
  const { t } = useTranslation(['files', 'common'])
  const { uploads } = useUploads()
  const live = item.status === 'sending' || item.status === 'waiting' || item.status === 'asking'
  return (
    <li>
      <span className={css.uploadName}>{visible(item.name)}</span>
      {item.status === 'sending' ? (
        <Progress
          className={css.progress ?? ''}
          size="small"
          percent={item.size === 0 ? 0 : Math.round((100 * item.sent) / item.size)}
          aria-label={item.name}
        />
      ) : null}
      {item.status === 'done' ? <Check size={14} aria-label={t('files:status.done')} className={css.good} /> : null}
      {item.status === 'failed' ? (
        <span className={css.bad} title={item.problem?.hint ?? ''}>
          <CircleAlert size={14} aria-hidden /> {item.problem?.message}
        </span>
      ) : null}
      {item.status === 'waiting' ||
      item.status === 'skipped' ||
      item.status === 'cancelled' ||
      item.status === 'asking' ? (
        <span className={css.dim}>{t(`files:status.${item.status}`)}</span>
      ) : null}
      {item.status === 'failed' ? (
        <Button
          size="small"
          type="text"
          aria-label={t('common:action.retry')}
          icon={<RotateCw size={13} />}
          onClick={() => uploads.retry(item.id)}
        />
      ) : null}
      {live ? (
        <Button
          size="small"
          type="text"
          aria-label={t('files:cancelOf', { name: item.name })}
          icon={<X size={13} />}
          onClick={() => uploads.cancel(item.id)}
        />
      ) : null}
    </li>
  )
}
