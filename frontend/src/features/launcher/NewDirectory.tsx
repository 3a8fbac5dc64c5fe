import { useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { type FilePlace, inside, makeDirectory, placeKey } from '@/api/files'
import { NewName } from './NewName'
import { subPathFault } from './mountPath'

interface NewDirectoryProps {
  place: FilePlace
  /** Encoded path of the directory in which the new one is made. */
  dir: string
  taken: readonly string[]
}

/** Makes a directory among those that are listed, which stay as they are. */
export function NewDirectory({ place, dir, taken }: NewDirectoryProps) {
  const { t } = useTranslation('launcher')
  const client = useQueryClient()
  const make = async (name: string) => {
    await makeDirectory(place, inside(dir, encodeURIComponent(name)))
    await client.invalidateQueries({ queryKey: ['files', placeKey(place)] })
  }
  const faultOf = (name: string) =>
    taken.includes(name)
      ? t('subPath.taken')
      : name.includes('/') || name !== name.trim() || subPathFault(name)
        ? t('subPath.fault')
        : ''
  return <NewName open={t('subPath.new')} label={t('subPath.name')} faultOf={faultOf} make={make} />
}
