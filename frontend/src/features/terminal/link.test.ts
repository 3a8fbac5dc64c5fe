import { describe, expect, it } from 'vitest'
import { readLink } from './link'

describe('an address that a program has printed', () => {
  it('is followed only where it is of the web', () => {
    for (const uri of [
      'javascript:alert(1)',
      'file:///etc/passwd',
      'slipway://run?image=x',
      'data:text/html,x',
      'vscode://x',
      'ftp://host/x',
      '//host/x',
      'nothing',
      'http://',
    ])
      expect(readLink(uri)).toBeNull()
    expect(readLink('https://example.org/a?b#c')).toEqual({
      href: 'https://example.org/a?b#c',
      host: 'example.org',
      inside: false,
    })
  })

  it('is judged by where it leads, not by how it begins', () => {
    expect(readLink('https://example.org@evil.test/')?.host).toBe('evil.test')
    expect(readLink('https://EXAMPLE.org:8443/')?.host).toBe('example.org:8443')
    expect(readLink('https://ex\u0430mple.org/')?.host).toBe('xn--exmple-4nf.org')
  })

  it('may mean the container itself', () => {
    for (const host of ['localhost:8888', '127.0.0.1', '127.1', '0.0.0.0:80', '[::1]:6006', 'app.localhost'])
      expect(readLink(`http://${host}/lab?token=x`)?.inside).toBe(true)
    for (const host of ['localhost.example.org', '10.0.0.1', '[::2]'])
      expect(readLink(`http://${host}/`)?.inside).toBe(false)
  })
})
