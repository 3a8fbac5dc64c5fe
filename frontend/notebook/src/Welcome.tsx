import { useQuery } from '@tanstack/react-query'
import { Button, Skeleton } from 'antd'
import { NotebookText } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { listDirectory } from './api'
import { Failure } from './Failure'
import { FilesSwitch, Where } from './Toolbar'
import { isNotebook } from './FilePanel'
import styles from './notebook.module.css'

/** Notebooks of the session's home and of the folders in it. */
async function findNotebooks(): Promise<string[]> {
  const home = await listDirectory('')
  const folders = home.filter(({ kind, name }) => kind === 'directory' && !name.startsWith('.')).slice(0, 20)
  const inside = await Promise.all(
    folders.map(async ({ name }) =>
      (await listDirectory(name).catch(() => [])).map((entry) => `${name}/${entry.name}`),
    ),
  )
  return [...home.map(({ name }) => name), ...inside.flat()].filter(isNotebook)
}

interface WelcomeProps {
  look: ReactNode
  files: boolean
  onFiles: (shown: boolean) => void
  onOpen: (path: string) => void
}

/** What stands where no notebook is open. */
export function Welcome({ look, files, onFiles, onOpen }: WelcomeProps) {
  const { t } = useTranslation()
  const found = useQuery({ queryKey: ['notebooks'], queryFn: findNotebooks })
  return (
    <>
      <header className={styles.bar}>
        <FilesSwitch shown={files} onShown={onFiles} />
        <Where />
        <span className={styles.grow} />
        {look}
      </header>
      <section className={styles.welcome}>
        <h1>{t('choose')}</h1>
        <p className={styles.quiet}>{t('chooseHelp')}</p>
        {found.isPending && <Skeleton active title={false} />}
        {found.isError && <Failure error={found.error} onRetry={() => void found.refetch()} />}
        {found.data?.length === 0 && <p>{t('noneYet')}</p>}
        {found.data?.map((path) => (
          <Button key={path} icon={<NotebookText size={15} />} onClick={() => onOpen(path)}>
            {path}
          </Button>
        ))}
      </section>
    </>
  )
}
