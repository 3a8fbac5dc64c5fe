import { Button, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { MAX_TAGS } from '@/api/rules.gen'
import type { Session } from '@/api/types.gen'
import css from './SessionsPage.module.css'

interface TagFormProps {
  sessions: Session[]
  /** Every tag that there is, to choose from. */
  known: string[]
  onSet: (add: string[], remove: string[]) => void
  onCancel: () => void
}

/** Adds tags to several sessions and takes others from them; what they have besides stays. */
export function TagForm({ sessions, known, onSet, onCancel }: TagFormProps) {
  const { t } = useTranslation(['sessions', 'common'])
  const [add, setAdd] = useState<string[]>([])
  const [remove, setRemove] = useState<string[]>([])
  const present = [...new Set(sessions.flatMap((s) => s.tags))].sort()
  const options = (tags: string[]) => tags.map((value) => ({ value }))
  // Upwards, where it covers none of the buttons below.
  const list = { placement: 'topLeft', listHeight: 128 } as const
  return (
    <div className={css.tagForm}>
      <label>
        {t('sessions:tags.add')}
        <Select
          mode="tags"
          {...list}
          notFoundContent={null}
          autoFocus
          aria-label={t('sessions:tags.add')}
          tokenSeparators={[',']}
          maxCount={MAX_TAGS}
          value={add}
          onChange={setAdd}
          options={options(known)}
        />
      </label>
      {present.length > 0 ? (
        <label>
          {t('sessions:tags.remove')}
          <Select
            mode="multiple"
            {...list}
            aria-label={t('sessions:tags.remove')}
            value={remove}
            onChange={setRemove}
            options={options(present)}
          />
        </label>
      ) : null}
      <div className={css.tagFormFoot}>
        <Button size="small" onClick={onCancel}>
          {t('common:action.cancel')}
        </Button>
        <Button
          size="small"
          type="primary"
          disabled={add.length + remove.length === 0}
          onClick={() => onSet(add, remove)}
        >
          {t('sessions:tags.set', { count: sessions.length })}
        </Button>
      </div>
    </div>
  )
}
