import { Button } from 'antd'
import { SearchX } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { Unknown } from './filter'
import css from './SessionsPage.module.css'

/** Properties whose values are the same everywhere. */
const closed = { status: true, type: true, result: true }

interface UnknownTermProps {
  unknown: Unknown
  onQuery: (query: string) => void
}

/** Says that a term of the filter names what there is not, and offers the nearest that there is. */
export function UnknownTerm({ unknown: { property, word, meant }, onQuery }: UnknownTermProps) {
  const { t } = useTranslation('sessions')
  return (
    <div className={css.unknown} role="status">
      <SearchX size={14} aria-hidden />
      <span>
        {property in closed
          ? t(`unknown.${property as 'status'}`, { word })
          : t(property ? 'unknown.value' : 'unknown.property', { property, word })}
      </span>
      {meant ? (
        <Button size="small" onClick={() => onQuery(meant.query)}>
          {t('unknown.meant', { word: property ? `${property}:${meant.word}` : `${meant.word}:` })}
        </Button>
      ) : null}
    </div>
  )
}
