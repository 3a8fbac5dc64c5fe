import { useTranslation } from 'react-i18next'
import { Dialog } from '@/ui/Dialog'
import css from './commands.module.css'
import { Shortcut } from './Shortcut'

/** A line of the cheat sheet: what happens, and each way to ask for it. */
interface KeyLine {
  label: string
  keys: string[]
}

interface CheatSheetProps {
  sections: readonly string[]
  mac: boolean
  onClose: () => void
}

/** Every key of the application, on one page. */
export function CheatSheet({ sections, mac, onClose }: CheatSheetProps) {
  const { t } = useTranslation('commands')
  const main = mac ? '⌘' : 'Ctrl'
  const shifted = mac ? '⌘' : 'Ctrl+Shift'
  const groups: [string, KeyLine[]][] = [
    [
      t('sheet.anywhere'),
      [
        { label: t('sheet.palette'), keys: [`${main}+K`] },
        { label: t('sheet.new'), keys: [`${main}+N`, 'N'] },
        { label: t('sheet.filter'), keys: ['/'] },
        { label: t('sheet.help'), keys: ['?'] },
        { label: t('sheet.close'), keys: ['Esc'] },
      ],
    ],
    [
      t('sheet.terminal'),
      [
        { label: t('sheet.palette'), keys: [mac ? '⌘+K' : 'Ctrl+Shift+K'] },
        { label: t('sheet.copy'), keys: [`${shifted}+C`] },
        { label: t('sheet.paste'), keys: [`${shifted}+V`] },
        { label: t('sheet.find'), keys: [`${shifted}+F`] },
        { label: t('sheet.selectAll'), keys: [`${shifted}+A`] },
      ],
    ],
    [t('sheet.sections'), sections.slice(0, 9).map((label, i) => ({ label, keys: [`${main}+${i + 1}`] }))],
  ]
  return (
    <Dialog title={t('sheet.title')} footer={null} width={760} onCancel={onClose}>
      <div className={css.sheet}>
        {groups.map(([title, lines]) => (
          <section key={title} aria-label={title}>
            <h3>{title}</h3>
            <dl>
              {lines.map(({ label, keys }) => (
                <div key={label} className={css.line}>
                  <dt>{label}</dt>
                  <dd>
                    {keys.map((key, i) => (
                      <span key={key}>
                        {i > 0 ? <span className={css.or}> {t('sheet.or')} </span> : null}
                        <Shortcut keys={key} />
                      </span>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p className={css.or}>{t('sheet.note')}</p>
    </Dialog>
  )
}
