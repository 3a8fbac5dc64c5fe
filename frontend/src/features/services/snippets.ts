/** Stands where a person puts a token of theirs. */
export const PLACEHOLDER = 'YOUR_TOKEN'

export const clients = ['curl', 'python', 'javascript', 'editor'] as const
export type Client = (typeof clients)[number]

interface Endpoint {
  /** Base of the API: http://127.0.0.1:40001/v1. */
  address: string
  model: string
  /** It needs no token. */
  open: boolean
}

/** A shell word in which quotes of JSON stay as they are. */
const shell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

const greeting = 'Hello!'

/** The file ~/.continue/config.yaml of the editor extension Continue. What JSON quotes, YAML does, too. */
export function continueConfig({ address, model, open }: Endpoint): string {
  return `name: Slipway
version: 0.0.1
schema: v1
models:
  - name: ${JSON.stringify(model)}
    provider: openai
    model: ${JSON.stringify(model)}
    apiBase: ${JSON.stringify(address)}
    apiKey: ${open ? 'none' : PLACEHOLDER}`
}

/** A program, ready to run, that sends one message to a service and prints its answer as it comes. */
export function snippet(client: Exclude<Client, 'editor'>, { address, model, open }: Endpoint): string {
  const key = JSON.stringify(open ? 'none' : PLACEHOLDER)
  const name = JSON.stringify(model)
  switch (client) {
    case 'curl':
      return [
        `curl -N ${address}/chat/completions \\`,
        ...(open ? [] : [`  -H 'Authorization: Bearer ${PLACEHOLDER}' \\`]),
        `  -H 'Content-Type: application/json' \\`,
        `  -d ${shell(`{
    "model": ${name},
    "messages": [{"role": "user", "content": "${greeting}"}],
    "stream": true
  }`)}`,
      ].join('\n')
    case 'python':
      return `# pip install openai
from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(address)}, api_key=${key})
stream = client.chat.completions.create(
    model=${name},
    messages=[{"role": "user", "content": "${greeting}"}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()`
    case 'javascript':
      return `// npm install openai
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: ${JSON.stringify(address)}, apiKey: ${key} })
const stream = await client.chat.completions.create({
  model: ${name},
  messages: [{ role: 'user', content: '${greeting}' }],
  stream: true,
})
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? '')
}`
  }
}
