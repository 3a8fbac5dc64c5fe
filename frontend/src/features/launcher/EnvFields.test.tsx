import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { useState } from 'react'
import { expect, it } from 'vitest'
import { renderView } from '@/api/testing/render'
import { type Draft, EMPTY_DRAFT, type EnvRow } from './draft'
import { EnvFields } from './EnvFields'
import { shownIssues } from './issueText'

function show(env: EnvRow[] = [{ name: '', value: '' }]) {
  function Form() {
    const [draft, setDraft] = useState<Draft>({ ...EMPTY_DRAFT, env })
    return (
      <>
        <EnvFields
          draft={draft}
          issues={shownIssues([], new Set())}
          change={(next) => setDraft((old) => (typeof next === 'function' ? next(old) : { ...old, ...next }))}
        />
        <output>{draft.env.map(({ name, value }) => `${name}:${value}`).join(' ')}</output>
      </>
    )
  }
  renderView(<Form />)
}
const entered = () => screen.getByRole('status').textContent
const name = () => screen.getByRole('textbox', { name: 'Variable 1: name' })

it('takes what is pasted as NAME=value apart, and hides the value of a secret', async () => {
  show()
  await userEvent.click(name())
  await userEvent.paste('HF_TOKEN=hf_x')
  expect(entered()).toBe('HF_TOKEN:hf_x')
  expect(screen.getByLabelText('Variable 1: value')).toHaveAttribute('type', 'password')
  expect(screen.getByLabelText('Variable 1: value')).toHaveFocus()
})

it('goes on with the value when an equals sign is typed after the name', async () => {
  show([{ name: '', value: 'kept' }])
  await userEvent.type(name(), 'SEED=')
  expect(entered()).toBe('SEED:kept')
  await userEvent.keyboard('7')
  expect(entered()).toBe('SEED:kept7')
})

it('makes rows of a whole .env file, whose variables change where they are already', async () => {
  show([
    { name: '', value: '' },
    { name: 'SEED', value: '1' },
  ])
  await userEvent.click(name())
  await userEvent.paste('# run\nexport EPOCHS="3"\nSEED=2 # other\nHF_TOKEN=\'a b\'\n')
  expect(entered()).toBe('EPOCHS:3 HF_TOKEN:a b SEED:2')
})

it('leaves text that is no variable where it was pasted', async () => {
  show()
  await userEvent.click(name())
  await userEvent.paste('SEED')
  expect(entered()).toBe('SEED:')
})
