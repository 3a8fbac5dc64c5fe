import { useQuery } from '@tanstack/react-query'
import { App, Button, Segmented, Skeleton } from 'antd'
import { Download } from 'lucide-react'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { asProblem } from '@/api/client'
import { contentAddress, type FilePlace, placeKey, readFile } from '@/api/files'
import type { FileInfo } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { saveUrl } from '@/lib/save'
import { Dialog } from '@/ui/Dialog'
import { EmptyState } from '@/ui/EmptyState'
import { ErrorState } from '@/ui/ErrorState'
import { Editor } from './Editor'
import css from './files.module.css'
import { Notebook } from './Notebook'
import { imageType, isNumeric, parseTable, previewKind, visible } from './paths'

/** The most that is shown or edited here. */
const most = 1024 ** 2
const mostImage = 32 * 1024 ** 2
const mostRows = 500

interface PreviewProps {
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
  const { place, path, file, onClose, onSaved } = props
  const { t } = useTranslation(['files', 'common'])
  const { modal } = App.useApp()
  const unsaved = useRef(false)
  const onChanged = useCallback((changed: boolean) => {
    unsaved.current = changed
  }, [])
  const saved = () => {
    onSaved()
    onClose()
  }
  const close = () => {
    if (!unsaved.current) onClose()
    else
      modal.confirm({
        title: t('files:discard.title'),
        content: t('files:discard.text', { name: visible(file.name) }),
        okText: t('files:discard.go'),
        okButtonProps: { danger: true },
        cancelText: t('files:discard.stay'),
        onOk: onClose,
      })
  }
  const kind = previewKind(file.name)
  const limit = kind === 'image' ? mostImage : most
  const tooLarge = file.size > limit
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
    <Dialog
      width={900}
      title={
        <span className={css.previewTitle}>
          {visible(file.name)}
          <small>{formatBytes(file.size)}</small>
        </span>
      }
      footer={null}
      onCancel={close}
      destroyOnHidden
    >
      {tooLarge ? (
        <EmptyState
          icon={Download}
          title={t('files:tooLarge')}
          text={t('files:tooLargeText', { size: formatBytes(limit) })}
        >
          {button}
        </EmptyState>
      ) : content.isError ? (
        <ErrorState problem={asProblem(content.error)} onRetry={() => void content.refetch()} />
      ) : content.data ? (
        kind === 'image' ? (
          <Picture blob={content.data} name={file.name} />
        ) : (
          <Text
            {...props}
            blob={content.data}
            kind={kind}
            button={button}
            onChanged={onChanged}
            onCancel={close}
            onSaved={saved}
          />
        )
      ) : (
        <Skeleton active />
      )}
    </Dialog>
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

interface TextProps extends Omit<PreviewProps, 'onClose'> {
  blob: Blob
  kind: 'csv' | 'notebook' | 'text'
  button: React.ReactNode
  onChanged: (changed: boolean) => void
  onCancel: () => void
}

/** Reads bytes as text; null where they are none. */
function useText(blob: Blob): string | null | undefined {
  const [text, setText] = useState<string | null>()
  useEffect(() => {
    let current = true
    void blob.arrayBuffer().then((bytes) => {
      if (!current) return
      try {
        const read = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
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
  const [plain, setPlain] = useState(props.kind === 'text')
  if (text === undefined) return <Skeleton active />
  if (text === null) {
    return (
      <EmptyState icon={Download} title={t('binary')} text={t('binaryText')}>
        {props.button}
      </EmptyState>
    )
  }
  const editor = <Editor {...props} text={text} />
  if (props.kind === 'text') return editor
  // A mark at the beginning tells the encoding and is part of nothing.
  const content = text.replace(/^\ufeff/, '')
  return (
    <>
      <Segmented
        className={css.kinds ?? ''}
        aria-label={t('showAs')}
        value={plain ? 'text' : 'view'}
        options={[
          { value: 'view', label: t(props.kind === 'csv' ? 'asTable' : 'asNotebook') },
          { value: 'text', label: t('asText') },
        ]}
        onChange={(value) => setPlain(value === 'text')}
      />
      {plain ? null : props.kind === 'csv' ? (
        <Sheet text={content} separator={props.file.name.toLowerCase().endsWith('.tsv') ? '\t' : ','} />
      ) : (
        <Notebook text={content} />
      )}
      {/* What was written stays while one looks at the other. */}
      <div hidden={!plain}>{editor}</div>
    </>
  )
}

function Sheet({ text, separator }: { text: string; separator: string }) {
  const { t } = useTranslation('files')
  const [head, ...rows] = useMemo(() => parseTable(text, separator, mostRows + 1), [text, separator])
  const look = useMemo(() => head?.map((_, i) => (isNumeric(rows, i) ? css.numbers : undefined)), [head, rows])
  return (
    <div className={css.sheet}>
      <table>
        <thead>
          <tr>
            {head?.map((cell, i) => (
              <th key={i} className={look?.[i]}>
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, k) => (
                <td key={k} className={look?.[k]}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === mostRows ? <p className={css.note}>{t('firstRows', { count: mostRows })}</p> : null}
    </div>
  )
}
