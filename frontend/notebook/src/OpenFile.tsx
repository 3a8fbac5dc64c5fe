import { useQuery } from '@tanstack/react-query'
import { Skeleton } from 'antd'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { readFile } from './api'
import { Failure } from './Failure'
import { parseNotebook } from './nbformat'
import { SheetView } from './SheetView'
import { FilesSwitch, Where } from './Toolbar'
import styles from './notebook.module.css'

export interface OpenFileProps {
  path: string
  dark: boolean
  look: ReactNode
  files: boolean
  onFiles: (shown: boolean) => void
}

/** A notebook from its file on. */
export function OpenFile(props: OpenFileProps) {
  const { t } = useTranslation()
  const opened = useQuery({
    queryKey: ['notebook', props.path],
    queryFn: async () => {
      const { text, version } = await readFile(props.path)
      return { notebook: parseNotebook(text), version }
    },
    retry: false,
    staleTime: Infinity,
    gcTime: 0,
  })
  if (opened.data) return <SheetView {...props} opened={opened.data} />
  return (
    <>
      <header className={styles.bar}>
        <FilesSwitch shown={props.files} onShown={props.onFiles} />
        <Where />
        <span className={styles.grow} />
        {props.look}
      </header>
      <section className={styles.welcome} aria-busy={opened.isPending} aria-label={t('loading')}>
        {opened.isError ? <Failure error={opened.error} onRetry={() => void opened.refetch()} /> : <Skeleton active />}
      </section>
    </>
  )
}
