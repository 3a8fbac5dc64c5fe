import { Tooltip } from 'antd'
import { Tag } from 'lucide-react'
import css from './SessionsPage.module.css'

/** A person's own marks; those that do not fit are told by the tip. */
export function TagsCell({ tags }: { tags: readonly string[] }) {
  if (tags.length === 0) return <span className={css.dim}>–</span>
  return (
    <Tooltip title={tags.join(', ')} mouseEnterDelay={0.4}>
      <span className={css.tagList}>
        {tags.map((tag) => (
          <span key={tag} className={css.tag}>
            <Tag size={11} aria-hidden />
            {tag}
          </span>
        ))}
      </span>
    </Tooltip>
  )
}

export function ClippedCell({ text }: { text: string }) {
  if (text === '') return <span className={css.dim}>–</span>
  return (
    <span className={css.clipped} title={text}>
      {text}
    </span>
  )
}
