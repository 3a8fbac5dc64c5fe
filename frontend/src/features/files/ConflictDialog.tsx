import { Button, Checkbox } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { formatBytes } from '@/lib/bytes'
import { formatExact } from '@/lib/time'
import { Dialog } from '@/ui/Dialog'
import css from './files.module.css'
import { visible } from './paths'
import type { UploadItem } from './uploads'
import { useUploads } from './useFiles'

/** Asks what becomes of a file whose name is taken, and shows both. */
export function ConflictDialog({ item, several }: { item: UploadItem; several: boolean }) {
  const { t } = useTranslation('files')
  const { uploads } = useUploads()
  const [all, setAll] = useState(false)
  const { there } = item
  const replaceable = there?.kind !== 'directory'
  const skip = (
    <Button key="skip" onClick={() => uploads.answer(item.id, 'skip', all)}>
      {t('conflict.skip')}
    </Button>
  )
  return (
    <Dialog
      title={t('conflict.title', { name: visible(item.name) })}
      onCancel={() => uploads.answer(item.id, 'skip', false)}
      footer={
        replaceable
          ? [
              skip,
              <Button key="keep" onClick={() => uploads.answer(item.id, 'keep-both', all)}>
                {t('conflict.keep')}
              </Button>,
              <Button key="replace" type="primary" danger onClick={() => uploads.answer(item.id, 'replace', all)}>
                {t('conflict.replace')}
              </Button>,
            ]
          : [skip]
      }
    >
      <p>{t(replaceable ? 'conflict.text' : 'conflict.directory')}</p>
      {there ? (
        <table className={css.both}>
          <tbody>
            <Side
              name={t('conflict.there')}
              size={replaceable ? there.size : undefined}
              modified={there.modified}
              newer={Date.parse(there.modified) > Date.parse(item.modified)}
            />
            <Side
              name={t('conflict.new')}
              size={item.size}
              modified={item.modified}
              newer={Date.parse(item.modified) > Date.parse(there.modified)}
            />
          </tbody>
        </table>
      ) : null}
      {several ? (
        <Checkbox checked={all} onChange={(event) => setAll(event.target.checked)}>
          {t('conflict.all')}
        </Checkbox>
      ) : null}
    </Dialog>
  )
}

function Side({
  name,
  size,
  modified,
  newer,
}: {
  name: string
  size: number | undefined
  modified: string
  newer: boolean
}) {
  const { t } = useTranslation('files')
  return (
    <tr>
      <th scope="row">{name}</th>
      <td className={css.amount}>{size === undefined ? '' : formatBytes(size)}</td>
      <td>
        <time dateTime={modified}>{formatExact(modified)}</time>{' '}
        {newer ? <span className={css.newer}>{t('conflict.newer')}</span> : null}
      </td>
    </tr>
  )
}
