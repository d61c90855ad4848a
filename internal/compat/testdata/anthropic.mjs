// Anthropic's own client talks to the endpoint: each case prints what came of it, and the test compares.
import Anthropic from './npm/node_modules/@anthropic-ai/sdk/index.mjs'

const [, , url, which, key] = process.argv
const client = new Anthropic({ baseURL: url.replace(/\/v1$/, ''), apiKey: key ?? 'unused', authToken: null, maxRetries: 2 })
const tools = [{
  name: 'get_weather', description: 'the weather of a place', input_schema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
}]
const hi = [{ role: 'user', content: 'hi' }]
const ask = { model: 'main', max_tokens: 1024, messages: hi }
const text = (message) => message.content.filter((b) => b.type === 'text').map((b) => b.text).join('|')

const cases = {
  async models() {
    const ids = []
    for await (const m of client.models.list()) ids.push(m.id)
    const one = await client.models.retrieve('main')
    const none = await client.models.retrieve('nobody').catch((e) => e)
    return { ids, one: [one.id, one.type, one.display_name], none: [none.constructor.name, none.status, none.type] }
  },
  async chat() {
    const { data, response } = await client.messages.create({ ...ask, system: 'Be brief.' }).withResponse()
    const next = await client.messages.create({ ...ask, messages: [{ role: 'user', content: 'and?' }] }, { headers: { 'X-Regie-Session': response.headers.get('x-regie-session') } })
    return { text: text(data), stop: data.stop_reason, role: data.role, type: data.type, model: data.model, usage: data.usage.input_tokens > 0, next: text(next),
      ignored: response.headers.get('x-regie-ignored') }
  },
  async chatStreamed() {
    const kinds = []
    const stream = client.messages.stream(ask)
    stream.on('streamEvent', (e) => { if (e.type !== kinds.at(-1)) kinds.push(e.type) }) // deltas that come as one
    let pieces = ''
    stream.on('text', (delta) => { pieces += delta })
    const final = await stream.finalMessage()
    return { kinds, pieces, text: text(final), stop: final.stop_reason, usage: final.usage.input_tokens > 0 && final.usage.output_tokens > 0 }
  },
  async tools() {
    const first = await client.messages.create({ ...ask, tools })
    const uses = first.content.filter((b) => b.type === 'tool_use')
    const messages = [...hi, { role: 'assistant', content: first.content },
      { role: 'user', content: uses.map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: [{ type: 'text', text: 'sun' }] })) }]
    const second = await client.messages.create({ ...ask, messages, tools })
    return { stop: first.stop_reason, said: text(first), names: uses.map((b) => b.name), inputs: uses.map((b) => b.input), text: text(second) }
  },
  async toolsStreamed() {
    const first = await client.messages.stream({ ...ask, tools }).finalMessage()
    const use = first.content.at(-1)
    const messages = [...hi, { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, is_error: true, content: 'no network' }, { type: 'text', text: 'go on' }] }]
    const second = await client.messages.stream({ ...ask, messages, tools }).finalMessage()
    return { stop: first.stop_reason, content: first.content.map((b) => b.type), input: use.input, text: text(second) }
  },
  async toolRunner() {
    const places = []
    const run = client.beta.messages.toolRunner({
      ...ask, tools: [{ ...tools[0], type: 'custom', run: ({ place }) => { places.push(place); return 'sun' }, parse: (input) => input }],
    })
    return { text: text(await run), places }
  },
  async countTokens() {
    const short = await client.messages.countTokens({ model: 'main', messages: hi })
    const long = await client.messages.countTokens({ model: 'main', messages: [{ role: 'user', content: 'hi '.repeat(1000) }], system: 'Be brief.', tools })
    return { short: short.input_tokens > 0, long: long.input_tokens > 900 }
  },
  async abort() {
    const stream = await client.messages.create({ ...ask, stream: true })
    for await (const event of stream) {
      if (event.type === 'content_block_delta') {
        stream.controller.abort()
        break
      }
    }
    return { aborted: stream.controller.signal.aborted }
  },
  async errors() {
    const out = {}
    const meet = async (name, promise) => { const e = await promise.catch((e) => e); out[name] = [e.constructor.name, e.status, e.type, e.errorCode, e.details?.param ?? null] }
    const user = (...content) => ({ ...ask, messages: [{ role: 'user', content }] })
    await meet('model', client.messages.create({ ...ask, model: 'nobody' }))
    await meet('stop', client.messages.create({ ...ask, stop_sequences: ['x'] }))
    await meet('image', client.messages.create(user({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } })))
    await meet('forced', client.messages.create({ ...ask, tools, tool_choice: { type: 'any' } }))
    await meet('session', client.messages.create(ask, { headers: { 'X-Regie-Session': '0197e0a1-2b3c-7d4e-8f50-61728394a5b6' } }))
    await meet('count', client.messages.countTokens({ model: 'nobody', messages: hi }))
    await meet('batches', client.messages.batches.list())
    return out
  },
  async failing() {
    const plain = await client.messages.create(ask).catch((e) => e)
    const stream = await client.messages.create({ ...ask, stream: true }).catch((e) => e)
    return { plain: [plain.constructor.name, plain.status, plain.type, plain.errorCode], stream: [stream.constructor.name, stream.status, stream.type, stream.errorCode] }
  },
  async failsMidway() {
    const stream = await client.messages.create({ ...ask, stream: true })
    let said = ''
    try {
      for await (const event of stream) said += event.delta?.text ?? ''
    } catch (e) {
      return { text: said, error: e.constructor.name, type: e.type, code: e.errorCode }
    }
    return { text: said }
  },
  async key() {
    const e = await client.messages.create(ask).catch((e) => e)
    return e.type === 'message' ? { text: text(e) } : { error: [e.constructor.name, e.status, e.type, e.errorCode] }
  },
}

console.log(JSON.stringify(await cases[which]()))
