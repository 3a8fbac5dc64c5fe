import { Button, Dropdown, Tag, Tooltip } from 'antd'
import {
  ChevronsRight,
  Ellipsis,
  PanelLeftClose,
  PanelLeftOpen,
  Play,
  Plus,
  RotateCw,
  Save,
  Square,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { KernelState } from './kernel/Kernel'
import type { Saving } from './useSaving'
import styles from './notebook.module.css'

export function FilesSwitch({ shown, onShown }: { shown: boolean; onShown: (shown: boolean) => void }) {
  const { t } = useTranslation()
  const text = t(shown ? 'hideFiles' : 'showFiles')
  const Icon = shown ? PanelLeftClose : PanelLeftOpen
  return <Button type="text" title={text} icon={<Icon size={16} />} aria-label={text} onClick={() => onShown(!shown)} />
}

function SavingText({ saving }: { saving: Saving }) {
  const { t } = useTranslation()
  const text = { saved: 'saved', unsaved: 'unsaved', saving: 'saving', conflict: 'unsaved', failed: 'unsaved' } as const
  return (
    <span className={styles.quiet} role="status">
      {t(text[saving.state])}
    </span>
  )
}

function KernelBadge({ state }: { state: KernelState }) {
  const { t } = useTranslation()
  return (
    <span className={styles.badge} data-kernel={state} role="status">
      <i aria-hidden />
      {t(`kernel_${state}`)}
    </span>
  )
}

/** Says on every view what this page is. */
export function Where() {
  const { t } = useTranslation()
  return (
    <Tooltip title={t('whereHelp')}>
      <Tag className={styles.where} tabIndex={0}>
        {t('where')}
      </Tag>
    </Tooltip>
  )
}

interface ToolbarProps {
  path: string
  files: boolean
  onFiles: (shown: boolean) => void
  look: ReactNode
  kernel: KernelState
  interruptible: boolean
  saving: Saving
  onSave: () => void
  onRun: () => void
  onRunAll: () => void
  onInterrupt: () => void
  onRestart: () => void
  onAdd: (type: 'code' | 'markdown') => void
  onClear: () => void
}

/** What can be done with a notebook, and how it stands. */
export function Toolbar(props: ToolbarProps) {
  const { t } = useTranslation()
  const busy = props.kernel === 'busy'
  return (
    <header className={styles.bar}>
      <FilesSwitch shown={props.files} onShown={props.onFiles} />
      <strong className={styles.name} title={props.path}>
        {props.path.split('/').at(-1)}
      </strong>
      <Where />
      <SavingText saving={props.saving} />
      <span className={styles.grow} />
      <KernelBadge state={props.kernel} />
      <Button title={t('runHelp')} type="primary" icon={<Play size={14} />} onClick={props.onRun}>
        {t('run')}
      </Button>
      <Button title={t('runAllHelp')} icon={<ChevronsRight size={15} />} onClick={props.onRunAll}>
        {t('runAll')}
      </Button>
      <Button
        title={t(props.interruptible ? 'interruptHelp' : 'restartOnly')}
        icon={<Square size={13} />}
        disabled={!busy || !props.interruptible}
        onClick={props.onInterrupt}
      >
        {t('interrupt')}
      </Button>
      <Button
        type="text"
        title={t('restartHelp')}
        icon={<RotateCw size={15} />}
        aria-label={t('restart')}
        onClick={props.onRestart}
      />
      <Button type="text" title={t('save')} icon={<Save size={15} />} aria-label={t('save')} onClick={props.onSave} />
      <Dropdown
        trigger={['click']}
        menu={{
          items: [
            { key: 'code', label: t('addCodeHelp'), icon: <Plus size={14} /> },
            { key: 'markdown', label: t('addTextHelp'), icon: <Plus size={14} /> },
            { type: 'divider' },
            { key: 'clear', label: t('clear') },
          ],
          onClick: ({ key }) => (key === 'clear' ? props.onClear() : props.onAdd(key === 'code' ? 'code' : 'markdown')),
        }}
      >
        <Button type="text" icon={<Ellipsis size={16} />} aria-label={t('more')} title={t('more')} />
      </Dropdown>
      {props.look}
    </header>
  )
}
