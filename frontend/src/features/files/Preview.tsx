import { useQuery } from '@tanstack/react-query'
import { App, Button, Input, Modal, Skeleton } from 'antd'
import { Download, Save } from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { contentAddress, type FilePlace, finishUpload, placeKey, readFile, statFile, writePiece } from '@/api/files'
import type { FileInfo } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { saveUrl } from '@/lib/save'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import css from './files.module.css'
import { Notebook } from './Notebook'
import { imageType, parseTable, previewKind } from './paths'

/** The most that is shown or edited here. */
const most = 1024 ** 2
const mostImage = 32 * 1024 ** 2
const mostRows = 500

export interface PreviewProps {
  place: FilePlace
  /** Encoded. */
  path: string
  file: FileInfo
  readOnly: boolean
  onClose: () => void
  onSaved: () => void
}

/** The content of one file: a picture, a table, a notebook, or text that can be edited. */
export function Preview(props: PreviewProps) {
  const { place, path, file, onClose } = props
  const { t } = useTranslation(['files', 'common'])
  const kind = previewKind(file.name)
  const tooLarge = file.size > (kind === 'image' ? mostImage : most)
  const content = useQuery({
    queryKey: ['file-content', placeKey(place), path, file.version],
    queryFn: async ({ signal }) => (await readFile(place, path, signal)).blob(),
    enabled: !tooLarge,
    retry: false,
    gcTime: 0,
  })
  const fetchIt = () => saveUrl(file.name, contentAddress(place, path))
  const button = (
    <Button icon={<Download size={15} />} onClick={fetchIt}>
      {t('files:download')}
    </Button>
  )
  return (
    <Modal open width={900} title={<span className={css.previewTitle}>{file.name}<small>{formatBytes(file.size)}</small></span>} footer={null} onCancel={onClose} destroyOnHidden>
      {tooLarge ? (
        <EmptyState icon={Download} title={t('files:tooLarge')} text={t('files:tooLargeText', { size: formatBytes(most) })}>
          {button}
        </EmptyState>
      ) : content.isError ? (
        <ErrorState problem={asProblem(content.error)} onRetry={() => void content.refetch()} />
      ) : content.data ? (
        kind === 'image' ? <Picture blob={content.data} name={file.name} /> : <Text {...props} blob={content.data} kind={kind} button={button} />
      ) : (
        <Skeleton active />
      )}
    </Modal>
  )
}

function Picture({ blob, name }: { blob: Blob; name: string }) {
  const [url, setUrl] = useState('')
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([blob], { type: imageType(name) ?? '' }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [blob, name])
  return url ? <img className={css.picture} src={url} alt={name} /> : null
}

interface TextProps extends PreviewProps {
  blob: Blob
  kind: 'csv' | 'notebook' | 'text'
  button: React.ReactNode
}

/** Reads bytes as text; null where they are none. */
function useText(blob: Blob): string | null | undefined {
  const [text, setText] = useState<string | null>()
  useEffect(() => {
    let current = true
    void blob.arrayBuffer().then((bytes) => {
      if (!current) return
      try {
        const read = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
        setText(read.includes('\0') ? null : read)
      } catch {
        setText(null)
      }
    })
    return () => {
      current = false
    }
  }, [blob])
  return text
}

function Text(props: TextProps) {
  const { t } = useTranslation('files')
  const text = useText(props.blob)
  if (text === undefined) return <Skeleton active />
  if (text === null) {
    return (
      <EmptyState icon={Download} title={t('binary')} text={t('binaryText')}>
        {props.button}
      </EmptyState>
    )
  }
  if (props.kind === 'csv') return <Sheet text={text} separator={props.file.name.toLowerCase().endsWith('.tsv') ? '\t' : ','} />
  if (props.kind === 'notebook') return <Notebook text={text} />
  return <Editor {...props} text={text} />
}

function Sheet({ text, separator }: { text: string; separator: string }) {
  const { t } = useTranslation('files')
  const [head, ...rows] = useMemo(() => parseTable(text, separator, mostRows + 1), [text, separator])
  return (
    <div className={css.sheet}>
      <table>
        <thead>
          <tr>{head?.map((cell, i) => <th key={i}>{cell}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>{row.map((cell, k) => <td key={k}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {rows.length === mostRows ? <p className={css.note}>{t('firstRows', { count: mostRows })}</p> : null}
    </div>
  )
}

function Editor({ place, path, file, readOnly, text, onClose, onSaved }: TextProps & { text: string }) {
  const { t } = useTranslation(['files', 'common'])
  const { message, modal } = App.useApp()
  const [value, setValue] = useState(text)
  const [busy, setBusy] = useState(false)
  const changed = value !== text
  const write = async () => {
    const blob = new Blob([value])
    const key = `edit${Date.now().toString(36)}`
    await writePiece(place, path, key, 0, blob, () => {}, new AbortController().signal)
    await finishUpload(place, path, key, blob.size, 'replace')
    void message.success(t('files:saved'))
    onSaved()
    onClose()
  }
  const save = async () => {
    setBusy(true)
    try {
      const now = await statFile(place, path).catch(() => null)
      if (now && now.version !== file.version) {
        modal.confirm({ title: t('files:changed.title'), content: t('files:changed.text'), okText: t('files:changed.go'), okButtonProps: { danger: true }, cancelText: t('common:action.cancel'), onOk: write })
      } else await write()
    } catch (error) {
      void message.error(asProblem(error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <Input.TextArea className={css.editor} aria-label={file.name} readOnly={readOnly} value={value} spellCheck={false} onChange={(event) => setValue(event.target.value)} />
      {readOnly ? null : (
        <div className={css.foot}>
          {changed ? <span className={css.note}>{t('files:unsaved')}</span> : null}
          <Button onClick={onClose}>{t('common:action.cancel')}</Button>
          <Button type="primary" icon={<Save size={15} />} disabled={!changed} loading={busy} onClick={() => void save()}>
            {t('common:action.save')}
          </Button>
        </div>
      )}
    </>
  )
}
