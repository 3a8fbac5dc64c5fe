import { Alert, Button, Dropdown, Modal } from 'antd'
import { ClipboardPaste, Copy, LoaderCircle, RotateCcw, Search, TextSelect } from 'lucide-react'
import { type RefObject, useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import type { Terminal } from '@/api/types.gen'
import { formatBytes } from '@/lib/bytes'
import { platformOf } from '@/lib/platform'
import '@xterm/xterm/css/xterm.css'
import css from './terminal.module.css'
import { shortcut } from './keys'
import { countLines, pastePreview } from './paste'
import { SearchBar } from './SearchBar'
import { type Look, type ShellUse, useShell } from './useShell'

export interface ShellViewProps {
  session: string
  terminal: Terminal
  /** Ids of the shells that this page has opened itself. */
  opened: RefObject<ReadonlySet<string>>
  active: boolean
  look: Look
  /** The session can hold a new shell. */
  canRestart: boolean
  onTitle: (title: string) => void
  onRestart: () => void
  onClose: () => void
}

const platform = platformOf(navigator.userAgent)

/** One shell: its screen, and quietly around it what there is to know. */
export function ShellView(props: ShellViewProps) {
  const { t } = useTranslation('terminal')
  const host = useRef<HTMLDivElement>(null)
  const use = useShell(host, props.session, props.terminal, props.opened, props.look, props.onTitle)
  const { shell, status, act } = use

  useEffect(() => {
    if (!props.active) return
    shell.current?.claimSize()
    shell.current?.screen.terminal.focus()
  }, [props.active, shell])

  useEffect(() => {
    const focused = () => {
      shell.current?.retry()
      if (props.active) shell.current?.claimSize()
    }
    window.addEventListener('focus', focused)
    window.addEventListener('online', focused)
    return () => {
      window.removeEventListener('focus', focused)
      window.removeEventListener('online', focused)
    }
  }, [props.active, shell])

  const items = [
    { key: 'copy', icon: <Copy size={14} />, label: t('copy'), extra: shortcut('C', platform) },
    { key: 'paste', icon: <ClipboardPaste size={14} />, label: t('paste'), extra: shortcut('V', platform) },
    { key: 'selectAll', icon: <TextSelect size={14} />, label: t('selectAll'), extra: shortcut('A', platform) },
    { type: 'divider' as const },
    { key: 'find', icon: <Search size={14} />, label: t('find'), extra: shortcut('F', platform) },
  ]
  return (
    <div className={css.shell} data-active={props.active} data-state={status.state} hidden={!props.active} data-testid={`shell-${props.terminal.id}`}>
      {status.lost > 0 ? (
        <Alert banner closable={{ onClose: use.forgetLost }} type="info" title={t('lost', { amount: formatBytes(status.lost) })} />
      ) : null}
      <div className={css.stage}>
        <Dropdown menu={{ items, onClick: ({ key }) => act(key as 'copy') }} trigger={['contextMenu']}>
          <div className={css.host} ref={host} />
        </Dropdown>
        {use.searching && shell.current ? <SearchBar screen={shell.current.screen} onClose={() => use.setSearching(false)} /> : null}
        {status.state === 'reconnecting' ? (
          <div className={css.pill} role="status">
            <LoaderCircle size={13} className={css.turn} aria-hidden />
            {t('reconnecting')}
            <Button type="link" size="small" onClick={() => shell.current?.retry()}>
              {t('now')}
            </Button>
          </div>
        ) : null}
      </div>
      <End {...props} use={use} />
      <PasteQuestion use={use} />
    </div>
  )
}

/** What is left when a shell has ended. */
function End({ use, canRestart, onRestart, onClose }: ShellViewProps & { use: ShellUse }) {
  const { t } = useTranslation('terminal')
  const { state, exitCode } = use.status
  if (state !== 'exited' && state !== 'gone') return null
  return (
    <div className={css.end} role="status">
      <span>{state === 'exited' ? t('exited', { code: exitCode }) : t('gone')}</span>
      {canRestart ? (
        <Button size="small" type="primary" icon={<RotateCcw size={13} />} onClick={onRestart}>
          {t('restart')}
        </Button>
      ) : null}
      <Button size="small" onClick={onClose}>
        {t('closeTab')}
      </Button>
    </div>
  )
}

function PasteQuestion({ use }: { use: ShellUse }) {
  const { t } = useTranslation('terminal')
  const text = use.question ?? ''
  return (
    <Modal
      open={use.question !== null}
      title={t('pasteTitle', { count: countLines(text) })}
      okText={t('pasteYes')}
      cancelText={t('pasteNo')}
      onOk={() => use.answer(true)}
      onCancel={() => use.answer(false)}
      destroyOnHidden
    >
      <p className={css.quiet}>{t('pasteText')}</p>
      <pre className={css.preview}>{pastePreview(text)}</pre>
    </Modal>
  )
}
