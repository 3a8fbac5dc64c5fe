import { Button, Input, Select, Tooltip } from 'antd'
import {
  ArrowDownToLine,
  ChevronDown,
  ChevronUp,
  Clock,
  Download,
  Search,
  WrapText,
  type LucideIcon,
} from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Kernel } from '@/api/types.gen'
import css from './LogsView.module.css'

function Toggle({
  icon: Icon,
  label,
  on,
  onToggle,
}: {
  icon: LucideIcon
  label: string
  on: boolean
  onToggle: () => void
}) {
  return (
    <Tooltip title={label}>
      <Button
        type="text"
        size="small"
        aria-label={label}
        aria-pressed={on}
        className={on ? (css.on ?? '') : ''}
        icon={<Icon size={15} />}
        onClick={onToggle}
      />
    </Tooltip>
  )
}

export interface LogView {
  times: boolean
  wrap: boolean
}

interface LogsBarProps {
  kernels: Kernel[]
  kernel: string
  onKernel: (name: string) => void
  needle: string
  onNeedle: (text: string) => void
  hits: number
  current: number
  onStep: (by: 1 | -1) => void
  view: LogView
  onView: (view: LogView) => void
  follow: boolean
  onFollow: (on: boolean) => void
  onDownload: () => void
}

export function LogsBar(props: LogsBarProps) {
  const {
    kernels,
    kernel,
    onKernel,
    needle,
    onNeedle,
    hits,
    current,
    onStep,
    view,
    onView,
    follow,
    onFollow,
    onDownload,
  } = props
  const { t } = useTranslation('session')
  return (
    <div className={css.bar}>
      {kernels.length > 1 ? (
        <Select
          size="small"
          aria-label={t('logs.kernel')}
          value={kernel}
          onChange={onKernel}
          options={kernels.map((k) => ({ value: k.name, label: k.name }))}
        />
      ) : null}
      <Input
        size="small"
        className={css.search ?? ''}
        prefix={<Search size={13} />}
        placeholder={t('logs.search')}
        aria-label={t('logs.search')}
        allowClear
        value={needle}
        onChange={(e) => onNeedle(e.target.value)}
        onKeyDown={(e) => {
          if (e.key === 'Enter') onStep(e.shiftKey ? -1 : 1)
          if (e.key === 'Escape' && needle) {
            e.stopPropagation()
            onNeedle('')
          }
        }}
      />
      {needle ? (
        <>
          <Button
            type="text"
            size="small"
            aria-label={t('logs.previous')}
            disabled={hits === 0}
            icon={<ChevronUp size={15} />}
            onClick={() => onStep(-1)}
          />
          <Button
            type="text"
            size="small"
            aria-label={t('logs.next')}
            disabled={hits === 0}
            icon={<ChevronDown size={15} />}
            onClick={() => onStep(1)}
          />
          <span className={css.matches} role="status">
            {hits === 0 ? t('logs.noMatch') : t('logs.matches', { current: current + 1, total: hits })}
          </span>
        </>
      ) : null}
      <div className={css.end}>
        <Toggle icon={ArrowDownToLine} label={t('logs.follow')} on={follow} onToggle={() => onFollow(!follow)} />
        <Toggle
          icon={Clock}
          label={t('logs.times')}
          on={view.times}
          onToggle={() => onView({ ...view, times: !view.times })}
        />
        <Toggle
          icon={WrapText}
          label={t('logs.wrap')}
          on={view.wrap}
          onToggle={() => onView({ ...view, wrap: !view.wrap })}
        />
        <Tooltip title={t('logs.download')} placement="topRight">
          <Button
            type="text"
            size="small"
            aria-label={t('logs.download')}
            icon={<Download size={15} />}
            onClick={onDownload}
          />
        </Tooltip>
      </div>
    </div>
  )
}
