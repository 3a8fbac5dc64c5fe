import { describe, expect, it, vi } from 'vitest'
import { ApiProblem, asProblem, call, target, UNREACHABLE } from './client'

function answer(status: number, body: string): void {
  vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(status === 204 ? null : body, { status }))
}

describe('call', () => {
  it('gives the parsed answer', async () => {
    answer(200, '{"a":1}')
    await expect(call('version')).resolves.toEqual({ a: 1 })
  })
  it('sends a body as JSON with the cookie', async () => {
    answer(200, '{}')
    await call('setting-update', { path: { name: 'a/b' }, body: { value: '1' } })
    expect(fetch).toHaveBeenCalledWith(
      '/api/v1/settings/file/a%2Fb',
      expect.objectContaining({ method: 'PATCH', body: '{"value":"1"}', credentials: 'same-origin' }),
    )
  })
  it('takes no content for nothing', async () => {
    answer(204, '')
    await expect(call('recent-delete', { path: { id: 'x' } })).resolves.toBeUndefined()
  })
  it('throws a refusal with its code, hint and fields', async () => {
    answer(
      422,
      '{"code":"session_create_invalid","message":"No.","hint":"Do.",' +
        '"fields":[{"field":"name","code":"c","message":"m"}]}',
    )
    const error = await call('version').catch((e: unknown) => e)
    expect(error).toBeInstanceOf(ApiProblem)
    expect(error).toMatchObject({
      code: 'session_create_invalid',
      message: 'No.',
      hint: 'Do.',
      status: 422,
      fields: [{ field: 'name' }],
    })
  })
  it('says so when the answer is no problem document', async () => {
    answer(502, '<html>')
    await expect(call('version')).rejects.toMatchObject({ code: 'server_answer_invalid', status: 502 })
  })
  it('tells silence from refusal', async () => {
    vi.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('Load failed'))
    await expect(call('version')).rejects.toMatchObject({ code: UNREACHABLE, status: 0 })
  })
  it('lets a cancelled request stay cancelled', async () => {
    vi.spyOn(globalThis, 'fetch').mockRejectedValue(new DOMException('stop', 'AbortError'))
    await expect(call('version')).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('target', () => {
  it('leaves out what is undefined, empty or false and escapes the rest', () => {
    expect(target('session', { path: { id: 'a b' } })).toBe('/api/v1/sessions/a%20b')
    expect(target('sessions', { query: { state: 'x y', agent: undefined, limit: 3 } })).toBe(
      '/api/v1/sessions?state=x+y&limit=3',
    )
    expect(target('logs', { path: { id: 'a' }, query: { follow: true, timestamps: false, kernel: '', tail: 0 } })).toBe(
      '/api/v1/sessions/a/logs?follow=1&tail=0',
    )
  })
})

describe('asProblem', () => {
  it('makes any thrown value showable', () => {
    expect(asProblem(new Error('boom'))).toMatchObject({ message: 'boom', status: 0 })
    expect(asProblem('text').message).toBe('text')
  })
})
