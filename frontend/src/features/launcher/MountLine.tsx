import { Button, Checkbox, Input } from 'antd'
import { Folder, FolderOpen, Trash2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import css from './launcher.module.css'
import type { MountRow } from './draft'
import { IssueLine } from './Field'
import type { StepProps } from './StepProps'
import { mountTarget } from './mountPath'

interface MountLineProps {
  mount: MountRow
  index: number
  issues: StepProps['issues']
  /** The machine of its folder, where there are several. */
  machine: string | undefined
  /** Undefined: there is nothing to choose from. */
  onBrowse: (() => void) | undefined
  onChange: (row: Partial<MountRow>) => void
  onRemove: () => void
  /** What can be done about it. */
  children?: ReactNode
}

/** What is mounted in one place: where it comes from, where it appears, whether it may be written. */
export function MountLine({ mount, index, issues, machine, onBrowse, onChange, onRemove, children }: MountLineProps) {
  const { t } = useTranslation('launcher')
  const sourceIssue =
    issues.at(`mounts[${index}].source`) ?? issues.at(`mounts[${index}].path`) ?? issues.at(`mounts[${index}].folder`)
  const targetIssue = issues.at(`mounts[${index}].target`) ?? issues.at(`mounts[${index}]`)
  const target = mountTarget(mount)
  const browseText = t(mount.folder === undefined ? 'storage.browse' : 'subPath.browse', { number: index + 1 })
  const browse = onBrowse ? (
    <button type="button" className={css.bare} aria-label={browseText} title={browseText} onClick={onBrowse}>
      <FolderOpen size={15} aria-hidden />
    </button>
  ) : (
    <span />
  )
  return (
    <div className={css.row}>
      <div className={css.mount}>
        {mount.folder === undefined ? (
          <Input
            className={css.mono}
            aria-label={t('storage.sourceOf', { number: index + 1 })}
            status={sourceIssue?.severity ?? ''}
            value={mount.source}
            placeholder="/data/images"
            spellCheck={false}
            onChange={(event) => onChange({ source: event.target.value })}
            suffix={browse}
          />
        ) : (
          <div className={css.folderRow}>
            <span className={css.folderName} title={mount.folder}>
              <Folder size={15} aria-hidden />
              {mount.folder}
              {machine ? <span className={css.optional}>{machine}</span> : null}
            </span>
            <Input
              className={css.mono}
              aria-label={t('storage.subPathOf', { number: index + 1 })}
              status={sourceIssue?.severity ?? ''}
              value={mount.path ?? ''}
              placeholder={t('storage.subPath')}
              spellCheck={false}
              onChange={(event) => onChange({ path: event.target.value })}
              suffix={browse}
            />
          </div>
        )}
        <Input
          className={css.mono}
          aria-label={t('storage.targetOf', { number: index + 1 })}
          status={targetIssue?.severity ?? ''}
          value={mount.target}
          placeholder={
            mount.folder === undefined && mount.source.trim() === '' ? t('storage.targetPlaceholder') : target
          }
          spellCheck={false}
          onChange={(event) => onChange({ target: event.target.value })}
        />
        <Checkbox
          checked={mount.readOnly}
          aria-label={t('storage.readOnlyOf', { number: index + 1 })}
          onChange={(event) => onChange({ readOnly: event.target.checked })}
        >
          {t('storage.readOnly')}
        </Checkbox>
        <Button
          type="text"
          aria-label={t('storage.remove', { number: index + 1 })}
          icon={<Trash2 size={15} />}
          onClick={onRemove}
        />
      </div>
      {sourceIssue ? <IssueLine issue={sourceIssue} /> : null}
      {children}
      {targetIssue ? (
        <IssueLine issue={targetIssue} />
      ) : (mount.folder ?? mount.source.trim()) !== '' &&
        mount.target.trim() !== '' &&
        mount.target.trim() !== target ? (
        <div className={css.hint}>{t('storage.appears', { target })}</div>
      ) : null}
    </div>
  )
}
