import { Button, Tooltip } from 'antd'
import { Rocket, Trash2 } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate } from 'react-router'
import { launchAddress } from '@/lib/image'
import { Bytes } from '@/ui/Bytes'
import { CopyButton } from '@/ui/CopyButton'
import { type FillColumn, FillTable } from '@/ui/FillTable'
import { RelativeTime } from '@/ui/Times'
import css from './images.module.css'
import { type ImageRow, inUse, nameOf, refOf } from './rows'

function Name({ image }: { image: ImageRow['image'] }) {
  const { t } = useTranslation('images')
  const name = nameOf(image)
  const others = image.refs.slice(image.origin ? 0 : 1)
  return (
    <div className={css.names}>
      <div className={css.name}>
        {name ? (
          <span className={image.origin ? css.own : css.ref}>{name}</span>
        ) : (
          <span className={css.dim}>{t('unnamed')}</span>
        )}
        {image.origin ? (
          <Tooltip title={t('customizedText', { session: image.origin.sessionName, base: image.origin.base })}>
            <span className={css.badge}>{t('customized')}</span>
          </Tooltip>
        ) : null}
      </div>
      <div className={css.second}>
        {others.length > 0 ? others.join(', ') : image.id.replace('sha256:', '').slice(0, 12)}
      </div>
    </div>
  )
}

function Users({ row }: { row: ImageRow }) {
  const { t } = useTranslation('images')
  const { usedBy } = row.image
  if (usedBy.length === 0)
    return row.containers > 0 ? (
      <span className={css.dim}>{t('containers', { count: row.containers })}</span>
    ) : (
      <span className={css.dim}>–</span>
    )
  return usedBy.map((user, i) => (
    <span key={`${user.session}${i}`}>
      {i > 0 ? ', ' : ''}
      {user.session ? <Link to={`/sessions/${user.session}`}>{user.name}</Link> : t('another')}
    </span>
  ))
}

interface ImagesTableProps {
  rows: ImageRow[]
  onRemove: (row: ImageRow) => void
}

/** The images of one tab. */
export function ImagesTable({ rows, onRemove }: ImagesTableProps) {
  const { t } = useTranslation('images')
  const navigate = useNavigate()
  const columns: FillColumn<ImageRow>[] = [
    {
      key: 'image',
      title: t('column.image'),
      width: 250,
      grow: 3,
      ellipsis: true,
      sorter: (a, b) => nameOf(a.image).localeCompare(nameOf(b.image)),
      render: (_, { image }) => <Name image={image} />,
    },
    {
      key: 'size',
      title: t('column.size'),
      width: 110,
      align: 'right',
      sorter: (a, b) => a.image.size - b.image.size,
      render: (_, { image }) => <Bytes value={image.size} />,
    },
    {
      key: 'alone',
      title: (
        <Tooltip title={t('aloneText')}>
          <span className={css.explained}>{t('column.alone')}</span>
        </Tooltip>
      ),
      width: 110,
      align: 'right',
      sorter: (a, b) => (a.alone ?? 0) - (b.alone ?? 0),
      render: (_, { alone }) => (alone === undefined ? <span className={css.dim}>…</span> : <Bytes value={alone} />),
    },
    {
      key: 'created',
      title: t('column.created'),
      width: 150,
      sorter: (a, b) => a.image.createdAt.localeCompare(b.image.createdAt),
      defaultSortOrder: 'descend',
      render: (_, { image }) => <RelativeTime at={image.createdAt} />,
    },
    {
      key: 'usedBy',
      title: t('column.usedBy'),
      width: 150,
      grow: 1,
      ellipsis: true,
      render: (_, row) => <Users row={row} />,
    },
    {
      key: 'actions',
      title: <span className="unseen">{t('column.actions')}</span>,
      width: 130,
      align: 'right',
      render: (_, row) => {
        const ref = refOf(row.image)
        const users =
          row.image.usedBy.map((u) => u.name || t('another')).join(', ') || t('containers', { count: row.containers })
        return (
          <span className={css.actions}>
            {row.image.refs.length > 0 ? (
              <>
                <CopyButton text={ref} label={`${t('copy')}: ${ref}`} />
                <Tooltip title={t('launch')}>
                  <Button
                    type="text"
                    size="small"
                    aria-label={`${t('launch')}: ${ref}`}
                    icon={<Rocket size={14} />}
                    onClick={() => void navigate(launchAddress(ref))}
                  />
                </Tooltip>
              </>
            ) : null}
            <Tooltip title={inUse(row) ? t('inUse', { names: users }) : t('remove')}>
              <Button
                type="text"
                size="small"
                danger
                disabled={inUse(row)}
                aria-label={`${t('remove')}: ${ref}`}
                icon={<Trash2 size={14} />}
                onClick={() => onRemove(row)}
              />
            </Tooltip>
          </span>
        )
      },
    },
  ]
  return <FillTable<ImageRow> rowKey={(row) => row.image.id} dataSource={rows} columns={columns} />
}
