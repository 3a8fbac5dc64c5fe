import { expect, it } from 'vitest'
import { platformOf } from './platform'

it('tells platforms by what browsers say of themselves', () => {
  expect(
    ['Mozilla/5.0 (Macintosh; …)', 'Mozilla/5.0 (Windows NT 10.0)', 'Mozilla/5.0 (X11; Linux)'].map(platformOf),
  ).toEqual(['mac', 'windows', 'linux'])
})
