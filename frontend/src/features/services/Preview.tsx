import { useTranslation } from 'react-i18next'
import { GPU_MEMORY_SHARE, MODEL_TARGET } from '@/api/runtimes.gen'
import { CopyButton } from '@/ui/CopyButton'
import { type Draft, fill, shareOf } from './draft'
import css from './form.module.css'
import { requestFor } from './request'
import { actionText, grouped, joinWords, quoteWord } from './words'

/** What each replica will run, argument by argument, as it is entered. */
export function Preview({ draft, deviceMemory }: { draft: Draft; deviceMemory: number }) {
  const { t } = useTranslation('services')
  const filled = fill(draft)
  const { spec } = requestFor(draft)
  const { argv } = filled
  const share = shareOf(draft, deviceMemory)
  return (
    <section className={css.preview} aria-label={t('preview.title')}>
      <div className={css.previewHead}>
        <h2 className={css.cardTitle}>{t('preview.title')}</h2>
        {argv && argv.length > 0 ? <CopyButton text={joinWords(argv)} label={t('preview.copy')} /> : null}
      </div>
      <code className={css.previewImage}>{filled.image || t('preview.noImage')}</code>
      {argv === undefined ? (
        <p className={css.bad}>{t('fault.quote')}</p>
      ) : argv.length === 0 ? (
        <p className={css.fact}>{t('preview.imageCommand')}</p>
      ) : (
        <ol className={css.argv} aria-label={t('preview.arguments')}>
          {grouped(argv).map((words, i) => (
            <li key={i}>
              {words.map((word, j) => (
                <code key={j}>{quoteWord(word)}</code>
              ))}
            </li>
          ))}
        </ol>
      )}
      <dl className={css.previewFacts}>
        {draft.rest.preStart ? (
          <>
            <dt>{t('preview.before')}</dt>
            <dd>
              {draft.rest.preStart.map((action, i) => (
                <code key={i} className={css.whole}>
                  {actionText(action)}
                </code>
              ))}
            </dd>
          </>
        ) : null}
        {argv?.some((word) => word.includes(GPU_MEMORY_SHARE)) ? (
          <>
            <dt>
              <code>{GPU_MEMORY_SHARE}</code>
            </dt>
            <dd>{share ? t('preview.share', { share }) : t('preview.shareLater')}</dd>
          </>
        ) : null}
        <dt>{t('preview.asked')}</dt>
        <dd>
          <code>
            :{filled.port}
            {filled.health}
          </code>
        </dd>
        <dt>{t('fact.folders')}</dt>
        <dd>
          {filled.mounts ? (
            <code>
              {draft.folder} → {MODEL_TARGET}
            </code>
          ) : (
            '–'
          )}
        </dd>
        {spec.env ? (
          <>
            <dt>{t('preview.env')}</dt>
            <dd>
              {spec.env.map((variable) => (
                <code key={variable.name}>{variable.name}</code>
              ))}
            </dd>
          </>
        ) : null}
        <dt>{t('preview.models')}</dt>
        <dd>
          <code>{filled.served.join(', ') || draft.name || '–'}</code>
        </dd>
      </dl>
    </section>
  )
}
