import { Checkbox } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call } from '@/api/client'

import { useStartOperation } from '@/api/useOperation'
import { formatBytes } from '@/lib/bytes'
import { Bytes } from '@/ui/Bytes'
import { Dialog } from '@/ui/Dialog'
import { RelativeTime } from '@/ui/Times'
import css from './images.module.css'
import { type CleanupGroup, cleanupOf, type ImageRow, nameOf } from './rows'

const groups: readonly CleanupGroup[] = ['dangling', 'custom', 'unused']

/** Lists what nobody uses; what has no name is ticked at first, everything else only by hand. */
export function CleanupDialog({
  rows,
  agent,
  onClose,
}: {
  rows: readonly ImageRow[]
  agent: string
  onClose: () => void
}) {
  const { t } = useTranslation(['images', 'common'])
  const start = useStartOperation()
  const [found] = useState(() => cleanupOf(rows))
  const [ticked, setTicked] = useState<ReadonlySet<string>>(() => new Set(found.dangling.map((row) => row.image.id)))
  const all = groups.flatMap((group) => found[group])
  const chosen = all.filter((row) => ticked.has(row.image.id))
  const tick = (ids: string[], on: boolean) =>
    setTicked((old) => {
      const next = new Set(old)
      for (const id of ids)
        if (on) next.add(id)
        else next.delete(id)
      return next
    })
  const go = async () => {
    if (await start(() => call('image-remove', { body: { images: chosen.map((row) => row.image.id), agent } })))
      onClose()
  }
  return (
    <Dialog
      width={640}
      title={t('images:cleanup.title')}
      okText={chosen.length === 0 ? t('images:remove') : t('images:cleanup.go', { count: chosen.length })}
      okButtonProps={{ danger: true, type: 'primary', disabled: chosen.length === 0 }}
      cancelText={t('common:action.cancel')}
      onOk={() => void go()}
      onCancel={onClose}
    >
      <p className={css.text}>{all.length === 0 ? t('images:cleanup.nothing') : t('images:cleanup.text')}</p>
      <div className={css.groups}>
        {groups.map((group) => {
          const ids = found[group].map((row) => row.image.id)
          const on = ids.filter((id) => ticked.has(id)).length
          return ids.length === 0 ? null : (
            <fieldset key={group} className={css.group}>
              <legend>
                <Checkbox
                  checked={on === ids.length}
                  indeterminate={on > 0 && on < ids.length}
                  onChange={(event) => tick(ids, event.target.checked)}
                >
                  {t(`images:cleanup.${group}`)}
                </Checkbox>
              </legend>
              {found[group].map(({ image, alone }) => (
                <div key={image.id} className={css.candidate}>
                  <Checkbox checked={ticked.has(image.id)} onChange={(event) => tick([image.id], event.target.checked)}>
                    <span className={css.candidateName}>
                      {nameOf(image) || image.id.replace('sha256:', '').slice(0, 12)}
                    </span>
                  </Checkbox>
                  <span className={css.dim}>
                    <RelativeTime at={image.createdAt} />
                  </span>
                  <span className={css.amount}>
                    <Bytes value={alone ?? 0} />
                  </span>
                </div>
              ))}
            </fieldset>
          )
        })}
      </div>
      {chosen.length > 0 ? (
        <p className={css.text}>
          {t('images:cleanup.frees', { amount: formatBytes(chosen.reduce((sum, row) => sum + (row.alone ?? 0), 0)) })}
        </p>
      ) : null}
    </Dialog>
  )
}
