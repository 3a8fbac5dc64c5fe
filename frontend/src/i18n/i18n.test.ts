import { describe, expect, it } from 'vitest'
import { en } from './en'
import { ko } from './ko'

type Tree = { [key: string]: string | Tree }

function flatten(tree: Tree, prefix = ''): Map<string, string> {
  const flat = new Map<string, string>()
  for (const [key, value] of Object.entries(tree)) {
    if (typeof value === 'string') flat.set(prefix + key, value)
    else for (const [path, text] of flatten(value, `${prefix}${key}.`)) flat.set(path, text)
  }
  return flat
}

const holes = (text: string) => [...text.matchAll(/\{\{\s*(\w+)/g)].map((m) => m[1]).sort()

describe.each(Object.keys(en) as (keyof typeof en)[])('the Korean %s', (namespace) => {
  const english = flatten(en[namespace])
  const korean = flatten(ko[namespace])
  // Korean has one plural form: what English says for one has no partner.
  const plural = (key: string) => !key.endsWith('_one')
  const wanted = [...english.keys()].filter(plural)

  it('has every text and no other', () => {
    expect([...korean.keys()].filter(plural).sort()).toEqual(wanted.sort())
  })
  it('fills in the same values', () => {
    for (const key of wanted)
      expect({ key, holes: holes(korean.get(key) ?? '') }).toEqual({ key, holes: holes(english.get(key) ?? '') })
  })
  it('leaves no text empty', () => {
    for (const [key, text] of korean) expect({ key, empty: text.trim() === '' }).toEqual({ key, empty: false })
  })
})
