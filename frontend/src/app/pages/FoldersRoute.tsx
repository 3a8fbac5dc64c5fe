import { Drawer } from 'antd'
import { useCallback } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate, useParams, useSearchParams } from 'react-router'
import { useFolders } from '@/api/folders'
import { FoldersPage } from '@/features/folders/FoldersPage'
import { ErrorState } from '@/ui/ErrorState'
import { FolderFiles } from '../FolderFiles'
import { useDropping } from '../useDropping'
import { useLaunchSpec } from '../useLaunchSpec'

/** The folders, and over them the files of the one that the address names. */
export function FoldersRoute() {
  const { id } = useParams()
  const navigate = useNavigate()
  const [params, setParams] = useSearchParams()
  const { t } = useTranslation('folders')
  const folders = useFolders().data
  const folder = folders?.find((f) => f.id === id)
  const reopened = useCallback(() => setParams({}, { replace: true }), [setParams])
  const { dropped, onTaken } = useDropping()
  const close = () => void navigate('/folders')
  return (
    <>
      <FoldersPage
        project={params.get('project') ?? ''}
        reopen={params.get('reopen') ?? ''}
        onReopened={reopened}
        dropped={dropped}
        onDropTaken={onTaken}
        onOpen={(f) => void navigate(`/folders/${f.id}`)}
        onLaunch={useLaunchSpec()}
      />
      {id && folders && !folder ? (
        <Drawer open mask={false} size={820} title={t('unknown.title')} onClose={close}>
          <ErrorState problem={{ message: t('unknown.text'), hint: t('unknown.hint') }} />
        </Drawer>
      ) : null}
      {folder ? (
        <FolderFiles
          beside
          folder={folder}
          dir={params.get('path') ?? ''}
          onVisit={(path) => setParams(path ? { path } : {})}
          onClose={close}
        />
      ) : null}
    </>
  )
}
