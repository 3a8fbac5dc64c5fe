import { describe, expect, it, vi } from 'vitest'
import { address, ApiProblem, asProblem, request, UNREACHABLE } from './client'

function answer(status: number, body: string): void {
  vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(status === 204 ? null : body, { status }))
}

describe('request', () => {
  it('gives the parsed answer', async () => {
    answer(200, '{"a":1}')
    await expect(request('/x')).resolves.toEqual({ a: 1 })
  })
  it('sends a body as JSON with the cookie', async () => {
    answer(200, '{}')
    await request('/x', { method: 'POST', body: { n: 1 } })
    expect(fetch).toHaveBeenCalledWith(
      '/x',
      expect.objectContaining({ method: 'POST', body: '{"n":1}', credentials: 'same-origin' }),
    )
  })
  it('takes no content for nothing', async () => {
    answer(204, '')
    await expect(request('/x', { method: 'DELETE' })).resolves.toBeUndefined()
  })
  it('throws a refusal with its code, hint and fields', async () => {
    answer(
      422,
      '{"code":"session_create_invalid","message":"No.","hint":"Do.",' +
        '"fields":[{"field":"name","code":"c","message":"m"}]}',
    )
    const error = await request('/x').catch((e: unknown) => e)
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
    await expect(request('/x')).rejects.toMatchObject({ code: 'server_answer_invalid', status: 502 })
  })
  it('tells silence from refusal', async () => {
    vi.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('Load failed'))
    await expect(request('/x')).rejects.toMatchObject({ code: UNREACHABLE, status: 0 })
  })
  it('lets a cancelled request stay cancelled', async () => {
    vi.spyOn(globalThis, 'fetch').mockRejectedValue(new DOMException('stop', 'AbortError'))
    await expect(request('/x')).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('address', () => {
  it('leaves out what is undefined and escapes the rest', () => {
    expect(address('/p', { a: 'x y', b: undefined, c: 3 })).toBe('/p?a=x+y&c=3')
    expect(address('/p', {})).toBe('/p')
  })
})

describe('asProblem', () => {
  it('makes any thrown value showable', () => {
    expect(asProblem(new Error('boom'))).toMatchObject({ message: 'boom', status: 0 })
    expect(asProblem('text').message).toBe('text')
  })
})
