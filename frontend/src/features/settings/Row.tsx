import { Tag, Tooltip } from 'antd'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { Setting } from '@/api/types.gen'
import css from './settings.module.css'

/** One setting of the page: what it is called and about, and its control. */
export interface RowSpec {
  /** Its name in the file. */
  name: string
  label: string
  text?: string
  control: ReactNode
}

export interface SectionSpec {
  title: string
  /** One sentence below the title. */
  note?: string
  rows: RowSpec[]
}

/** Says that a variable overrides what the file says. */
function OverrideTag({ setting }: { setting: Setting }) {
  const { t } = useTranslation('settings')
  return (
    <Tooltip title={t('overrideText', { variable: setting.variable, value: setting.override })}>
      <Tag variant="filled" className={css.tag ?? ''} tabIndex={0}>
        {t('override', { variable: setting.variable })}
      </Tag>
    </Tooltip>
  )
}

export function Row({ row, setting }: { row: RowSpec; setting: Setting | undefined }) {
  return (
    <div className={css.row} data-setting={row.name}>
      <div className={css.words}>
        <div className={css.label}>{row.label}</div>
        {row.text ? <div className={css.text}>{row.text}</div> : null}
        {setting?.override ? <OverrideTag setting={setting} /> : null}
      </div>
      {row.control}
    </div>
  )
}

/** The rows that speak of every word of a query, in label, text or name; all without one. */
export function matching(sections: SectionSpec[], query: string): SectionSpec[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  return sections
    .map((section) => ({
      ...section,
      rows: section.rows.filter((row) =>
        words.every((word) =>
          `${section.title} ${row.label} ${row.text ?? ''} ${row.name}`.toLowerCase().includes(word),
        ),
      ),
    }))
    .filter((section) => section.rows.length > 0)
}
