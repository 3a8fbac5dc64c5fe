import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import en from './en.json'
import ko from './ko.json'

const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path) && !path.includes('.test.'))
  .map((path) => readFileSync(join(import.meta.dirname, path), 'utf8'))
  .join('\n')

it('has every text in both languages', () => {
  expect(Object.keys(ko).sort()).toEqual(Object.keys(en).sort())
  const blanks = (text: string) => text.match(/\{\{\w+\}\}/g) ?? []
  for (const key of Object.keys(en) as (keyof typeof en)[]) expect(blanks(ko[key])).toEqual(blanks(en[key]))
})

it('asks for every text', () => {
  const made = /^(kernel|theme|format)_/
  expect(Object.keys(en).filter((key) => !made.test(key) && !sources.includes(`'${key}'`))).toEqual([])
})
