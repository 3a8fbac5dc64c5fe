import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { act, renderHook } from '@testing-library/react'
import i18next from 'i18next'
import { afterEach, describe, expect, it } from 'vitest'
import { changeLanguage } from '@/i18n/i18n'
import { en } from '@/i18n/en'
import { useSeeded } from './useSeeded'

const backend = join(import.meta.dirname, '../../../../backend')

afterEach(() => changeLanguage('en'))

describe('what Slipway itself offers', () => {
  it('is named here as the catalogue and the presets name it', () => {
    const catalogue = readFileSync(join(backend, 'environments/defaults.yaml'), 'utf8')
    const found = Object.fromEntries(
      [...catalogue.matchAll(/- id: (\S+)\n(?:    .*\n)*?    summary: (.+)\n/g)].map(([, id, summary]) => [
        id,
        summary,
      ]),
    )
    expect(en.launcher.seeded.environment).toEqual(found)
    const presets = readFileSync(join(backend, 'hub/presets.go'), 'utf8')
    expect(en.launcher.seeded.preset).toEqual(
      Object.fromEntries([...presets.matchAll(/preset\("(\w+)", "(\w+)"/g)].map(([, id, name]) => [id, name])),
    )
  })

  it('is said in the language of the person, what they wrote themselves as it is', async () => {
    const { result } = renderHook(useSeeded)
    expect(result.current('preset', 'small', 'Small')).toBe('Small')
    await act(() => changeLanguage('ko'))
    expect(i18next.language).toBe('ko')
    expect(result.current('preset', 'small', 'Small')).toBe('작게')
    expect(result.current('environment', 'python', 'Python and pip on Debian.')).toMatch(/[가-힣]/)
    expect(result.current('environment', 'python', 'What we all use')).toBe('What we all use')
    expect(result.current('preset', 'own', 'Night runs')).toBe('Night runs')
  })
})
