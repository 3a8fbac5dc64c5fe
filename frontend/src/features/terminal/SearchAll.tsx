import { Button, Input, Modal, Tooltip } from 'antd'
import { useQuery } from '@tanstack/react-query'
import { Search } from 'lucide-react'
import { useDeferredValue, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { asProblem, call } from '@/api/client'
import type { TerminalMatch } from '@/api/types.gen'
import { ErrorState } from '@/ui/ErrorState'
import css from './terminal.module.css'

/** One letter is found everywhere. */
const LEAST = 2

interface SearchAllProps {
  session: string
  running: boolean
  labelOf: (terminal: string) => string
  onShow: (terminal: string, text: string) => void
}

/** Finds a text in what all shells of the session have printed, those of other tabs included. */
export function SearchAll(props: SearchAllProps) {
  const { t } = useTranslation('terminal')
  const [open, setOpen] = useState(false)
  return (
    <>
      <Tooltip title={t('searchAll.title')}>
        <Button
          type="text"
          size="small"
          aria-label={t('searchAll.title')}
          disabled={!props.running}
          icon={<Search size={15} />}
          onClick={() => setOpen(true)}
        />
      </Tooltip>
      <Modal
        open={open}
        title={t('searchAll.title')}
        width={720}
        centered={false}
        footer={null}
        destroyOnHidden
        onCancel={() => setOpen(false)}
      >
        <Found
          {...props}
          onShow={(terminal, text) => {
            setOpen(false)
            props.onShow(terminal, text)
          }}
        />
      </Modal>
    </>
  )
}

function Found({ session, labelOf, onShow }: SearchAllProps) {
  const { t } = useTranslation('terminal')
  const [text, setText] = useState('')
  const [wanted, setWanted] = useState('')
  const query = useDeferredValue(wanted)
  const result = useQuery({
    queryKey: ['terminal-search', session, query],
    queryFn: ({ signal }) => call('terminal-search', { path: { id: session }, query: { q: query }, signal }),
    enabled: query.length >= LEAST,
    staleTime: 0,
    gcTime: 0,
    retry: false,
  })
  const matches = result.data?.matches ?? []
  const shells = [...new Set(matches.map((match) => match.terminal))]
  return (
    <div className={css.all}>
      <Input.Search
        autoFocus
        allowClear
        aria-label={t('searchAll.label')}
        placeholder={t('searchAll.label')}
        value={text}
        loading={result.isFetching}
        onChange={(event) => setText(event.target.value)}
        onSearch={(value) => setWanted(value.trim())}
      />
      <div className={css.allFound} aria-live="polite">
        {result.isError ? (
          <ErrorState compact problem={asProblem(result.error)} onRetry={() => void result.refetch()} />
        ) : null}
        {query.length < LEAST ? <p className={css.allNote}>{t('searchAll.begin')}</p> : null}
        {result.isSuccess && matches.length === 0 ? (
          <p className={css.allNote}>{t('searchAll.none', { text: query })}</p>
        ) : null}
        {shells.map((shell) => (
          <section key={shell}>
            <h3 className={css.allShell}>{labelOf(shell)}</h3>
            {matches
              .filter((match) => match.terminal === shell)
              .map((match) => (
                <Line key={match.offset} match={match} onShow={() => onShow(shell, match.text)} />
              ))}
          </section>
        ))}
        {result.data?.partial ? <p className={css.allNote}>{t('searchAll.partial')}</p> : null}
      </div>
    </div>
  )
}

function Line({ match, onShow }: { match: TerminalMatch; onShow: () => void }) {
  return (
    <button type="button" className={css.allLine} onClick={onShow}>
      {match.before}
      <mark>{match.text}</mark>
      {match.after}
    </button>
  )
}
