import { useQuery } from '@tanstack/react-query'
import { App as AntApp, Breadcrumb, Button, Input, Skeleton } from 'antd'
import { File, FilePlus2, Folder, NotebookText, RefreshCw } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { listDirectory, unwritten, writeFile } from './api'
import { Failure } from './Failure'
import { newNotebook, writeNotebook } from './nbformat'
import styles from './notebook.module.css'

interface FilePanelProps {
  dir: string
  onDir: (dir: string) => void
  path: string
  onOpen: (path: string) => void
}

const join = (dir: string, name: string) => (dir ? `${dir}/${name}` : name)
export const isNotebook = (name: string) => name.endsWith('.ipynb')

/** The session's folder, of which notebooks can be opened. */
export function FilePanel({ dir, onDir, path, onOpen }: FilePanelProps) {
  const { t } = useTranslation()
  const list = useQuery({ queryKey: ['list', dir], queryFn: () => listDirectory(dir), refetchInterval: 5000 })
  const parts = dir ? dir.split('/') : []
  const [naming, setNaming] = useState(false)
  return (
    <nav className={styles.panel} aria-label={t('files')}>
      <header className={styles.panelHead}>
        <strong>{t('files')}</strong>
        <span className={styles.grow} />
        <Button
          type="text"
          size="small"
          title={t('newNotebook')}
          icon={<FilePlus2 size={15} />}
          aria-label={t('newNotebook')}
          onClick={() => setNaming(true)}
        />
        <Button
          type="text"
          size="small"
          title={t('refresh')}
          icon={<RefreshCw size={14} />}
          aria-label={t('refresh')}
          onClick={() => void list.refetch()}
        />
      </header>
      <Breadcrumb
        className={styles.crumbs}
        items={[
          {
            title: (
              <button type="button" onClick={() => onDir('')}>
                {t('home')}
              </button>
            ),
          },
          ...parts.map((part, index) => ({
            title: (
              <button type="button" onClick={() => onDir(parts.slice(0, index + 1).join('/'))}>
                {part}
              </button>
            ),
          })),
        ]}
      />
      {naming && (
        <NewNotebook
          dir={dir}
          onClose={() => setNaming(false)}
          onMade={(made) => {
            void list.refetch()
            onOpen(made)
          }}
        />
      )}
      {list.isPending && <Skeleton active title={false} paragraph={{ rows: 4 }} />}
      {list.isError && <Failure error={list.error} onRetry={() => void list.refetch()} />}
      {list.data?.length === 0 && <p className={styles.quiet}>{t('emptyFolder')}</p>}
      <ul className={styles.files}>
        {list.data?.map(({ name, kind }) => {
          const directory = kind === 'directory'
          const at = join(dir, name)
          const Icon = directory ? Folder : isNotebook(name) ? NotebookText : File
          const opens = directory || isNotebook(name)
          return (
            <li key={name}>
              <button
                type="button"
                disabled={!opens}
                aria-current={at === path ? 'page' : undefined}
                title={name}
                onClick={() => (directory ? onDir(at) : onOpen(at))}
              >
                <Icon size={15} aria-hidden />
                <span>{name}</span>
              </button>
            </li>
          )
        })}
      </ul>
    </nav>
  )
}

function NewNotebook({ dir, onClose, onMade }: { dir: string; onClose: () => void; onMade: (path: string) => void }) {
  const { t } = useTranslation()
  const { message } = AntApp.useApp()
  const [name, setName] = useState('untitled')
  const create = async () => {
    const at = join(
      dir,
      `${name
        .trim()
        .replace(/\.ipynb$/, '')
        .replaceAll('/', '-')}.ipynb`,
    )
    try {
      await writeFile(at, writeNotebook(newNotebook()), unwritten)
      onClose()
      onMade(at)
    } catch (error) {
      void message.error(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <form
      className={styles.naming}
      onSubmit={(event) => {
        event.preventDefault()
        if (name.trim()) void create()
      }}
    >
      <Input
        size="small"
        autoFocus
        aria-label={t('newName')}
        value={name}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && onClose()}
        suffix=".ipynb"
        onFocus={(event) => event.target.select()}
      />
      <div>
        <Button size="small" onClick={onClose}>
          {t('cancel')}
        </Button>
        <Button size="small" type="primary" htmlType="submit" disabled={!name.trim()}>
          {t('create')}
        </Button>
      </div>
    </form>
  )
}
