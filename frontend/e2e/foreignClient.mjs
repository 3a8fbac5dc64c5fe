// A client of OpenAI as people use it, unchanged, against a service:
//
//   OPENAI_BASE_URL=… OPENAI_API_KEY=… node foreignClient.mjs MODEL
//   OPENAI_BASE_URL=… OPENAI_API_KEY=… node foreignClient.mjs --embed MODEL
//
// It fails with what is not as with OpenAI.
import assert from 'node:assert/strict'
import OpenAI from 'openai'

const args = process.argv.slice(2)
const embeds = args[0] === '--embed'
const model = args.at(-1) ?? ''
const client = new OpenAI({ maxRetries: 0, timeout: 120_000 })
if (embeds) {
  const { data } = await client.embeddings.create({ model, input: ['one', 'two'] })
  assert.equal(data.length, 2)
  assert.ok(data[0].embedding.length > 1)
  process.exit()
}
const messages = [{ role: 'user', content: 'Sing of the sea.' }]

const listed = []
for await (const one of client.models.list()) listed.push(one.id)
assert.ok(listed.includes(model), `${model} is not among ${String(listed)}`)
assert.equal((await client.models.retrieve(model)).object, 'model')

const plain = await client.chat.completions.create({ model, messages, max_tokens: 12 })
assert.equal(plain.object, 'chat.completion')
assert.ok(plain.choices[0].message.content.length > 0)
assert.equal(plain.usage.total_tokens, plain.usage.prompt_tokens + plain.usage.completion_tokens)

let text = ''
let usage
for await (const chunk of await client.chat.completions.create({
  model,
  messages,
  max_tokens: 12,
  stream: true,
  stream_options: { include_usage: true },
})) {
  assert.equal(chunk.object, 'chat.completion.chunk')
  text += chunk.choices[0]?.delta.content ?? ''
  usage = chunk.usage ?? usage
}
assert.ok(text.length > 0)
assert.ok(usage.completion_tokens > 0)

// Nobody asked for the usage: what the router asks for itself is not shown.
for await (const chunk of await client.chat.completions.create({ model, messages, max_tokens: 4, stream: true })) {
  assert.equal(chunk.choices.length, 1)
}

const helped = await client.chat.completions.stream({ model, messages, max_tokens: 12 }).finalContent()
assert.ok(helped.length > 0)

const completed = await client.completions.create({ model, prompt: 'The sea', max_tokens: 4 })
assert.equal(completed.object, 'text_completion')

const long = await client.chat.completions.create({ model, messages, max_tokens: 3000, stream: true, ignore_eos: true })
let words = 0
for await (const chunk of long) {
  words += chunk.choices.length
  if (words === 5) break // closes the connection
}
const leaving = new AbortController()
setTimeout(() => leaving.abort(), 50)
await assert.rejects(
  client.chat.completions.create({ model, messages, max_tokens: 3000, ignore_eos: true }, { signal: leaving.signal }),
  OpenAI.APIUserAbortError,
)

const failure = (promise) =>
  promise.then(
    () => assert.fail('it did not fail'),
    (error) => error,
  )
const unknown = await failure(client.chat.completions.create({ model: 'no-such-model', messages }))
assert.ok(unknown instanceof OpenAI.NotFoundError, String(unknown))
assert.equal(unknown.code, 'model_not_found')
assert.equal(unknown.param, 'model')
const stranger = new OpenAI({ apiKey: 'sk-wrong', maxRetries: 0 })
const refused = await failure(stranger.chat.completions.create({ model, messages }))
assert.ok(refused instanceof OpenAI.AuthenticationError, String(refused))
assert.equal(refused.code, 'invalid_api_key')
const wrong = await failure(client.chat.completions.create({ model }))
assert.ok(wrong instanceof OpenAI.APIError && wrong.status >= 400 && wrong.error.message, String(wrong))
