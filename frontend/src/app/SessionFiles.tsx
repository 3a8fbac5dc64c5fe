import { Drawer } from 'antd'
import { Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSession } from '@/api/hooks'
import { part } from '@/lib/lazily'

const Explorer = part(() => import('@/features/files/Explorer'), 'Explorer')

/** The files of a running session, as its user sees them. */
export function SessionFiles({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation('files')
  const { session } = useSession(id)
  const [dir, setDir] = useState('')
  return (
    <Drawer
      open
      size={820}
      title={`${t('title')} · ${session?.name ?? ''}`}
      onClose={onClose}
      styles={{ body: { padding: 0, overflow: 'hidden' } }}
    >
      <Suspense fallback={null}>
        <Explorer place={{ session: id }} root="/home/work" dir={dir} onVisit={setDir} readOnly={false} />
      </Suspense>
    </Drawer>
  )
}
