import { describe, expect, it } from 'vitest'
import { EMPTY_DRAFT, fromSpec, toSpec } from './draft'
import { decodeDraft, encodeDraft } from './draftUrl'
import { homeOf, keepingHome } from './home'
import { validate } from './validate'

const week = { value: 1, unit: 'w' } as const

describe('the home of a draft', () => {
  it('follows the setting until the person says otherwise', () => {
    expect(homeOf(EMPTY_DRAFT, undefined)).toBeNull()
    expect(homeOf(EMPTY_DRAFT, '0')).toBeNull()
    expect(homeOf(EMPTY_DRAFT, '7d')).toEqual({ keep: { value: 7, unit: 'd' } })
    expect(homeOf({ ...EMPTY_DRAFT, keepHome: { span: week } }, '0')).toEqual({ keep: week })
    expect(homeOf({ ...EMPTY_DRAFT, keepHome: { span: null } }, '7d')).toBeNull()
  })
  it('is a folder that is mounted there, whatever else is asked for', () => {
    const mounts = [{ source: '', folder: 'notes', target: '/home/work/', readOnly: false }]
    expect(homeOf({ ...EMPTY_DRAFT, mounts, keepHome: { span: week } }, '7d')).toEqual({ folder: 'notes' })
  })
  it('is asked for, read back, and kept in the address', () => {
    for (const [span, text] of [
      [week, '1w'],
      [null, ''],
    ] as const) {
      const draft = { ...EMPTY_DRAFT, image: 'a', keepHome: { span } }
      expect(toSpec(draft).keepHome).toBe(text)
      expect(fromSpec(toSpec(draft)).keepHome).toEqual({ span })
      expect(decodeDraft(encodeDraft(draft)).keepHome).toEqual({ span })
    }
    expect(toSpec(EMPTY_DRAFT)).not.toHaveProperty('keepHome')
    expect(JSON.parse(keepingHome('{"image":"a"}'))).toEqual({ image: 'a', keepHome: '30d' })
  })
  it('is not kept for no number of days', () => {
    const draft = { ...EMPTY_DRAFT, image: 'a', keepHome: { span: { value: null, unit: 'd' as const } } }
    expect(validate(draft, 0).map(({ field }) => field)).toEqual(['keepHome'])
  })
})
