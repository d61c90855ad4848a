// A client that others wrote talks to the endpoint: each case prints what came of it, and the test compares.
import OpenAI from './npm/node_modules/openai/index.mjs'

const [, , url, which] = process.argv
const client = new OpenAI({ baseURL: url, apiKey: 'unused', maxRetries: 2 })
const tools = [{
  type: 'function',
  function: { name: 'get_weather', description: 'the weather of a place', parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] } },
}]
const ours = [{ type: 'function', name: 'get_weather', description: 'the weather of a place', parameters: tools[0].function.parameters, strict: false }]
const hi = [{ role: 'user', content: 'hi' }]

const cases = {
  async models() {
    const ids = []
    for await (const m of client.models.list()) ids.push(m.id)
    return { ids, one: (await client.models.retrieve('main')).id }
  },
  async chat() {
    const { data, response } = await client.chat.completions.create({ model: 'main', messages: hi }).withResponse()
    return { text: data.choices[0].message.content, finish: data.choices[0].finish_reason, session: response.headers.get('x-regie-session') === data.metadata.session_id, usage: data.usage.total_tokens > 0 }
  },
  async chatStreamed() {
    const stream = client.chat.completions.stream({ model: 'main', messages: hi, stream_options: { include_usage: true } })
    const pieces = []
    stream.on('content', (delta) => pieces.push(delta))
    const final = await stream.finalChatCompletion()
    // How many pieces there are is a matter of who is faster: who joins late gets what was said so far as one.
    return { pieces: pieces.join(''), text: final.choices[0].message.content, finish: final.choices[0].finish_reason, usage: final.usage.total_tokens > 0 }
  },
  async tools() {
    const messages = [...hi]
    const first = await client.chat.completions.create({ model: 'main', messages, tools })
    const call = first.choices[0].message.tool_calls[0]
    messages.push(first.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'sun' })
    const second = await client.chat.completions.create({ model: 'main', messages, tools })
    return { finish: first.choices[0].finish_reason, name: call.function.name, arguments: call.function.arguments, text: second.choices[0].message.content }
  },
  async toolsStreamed() {
    const places = []
    const run = client.chat.completions.runTools({
      model: 'main', messages: hi, stream: true,
      tools: [{ type: 'function', function: { ...tools[0].function, parse: JSON.parse, function: ({ place }) => { places.push(place); return 'sun' } } }],
    })
    return { text: await run.finalContent(), places }
  },
  async responses() {
    const first = await client.responses.create({ model: 'main', input: 'hi', instructions: 'Be brief.' })
    const next = await client.responses.create({ model: 'main', input: 'and?', previous_response_id: first.id })
    const again = await client.responses.retrieve(next.id)
    const stale = await client.responses.create({ model: 'main', input: 'and?', previous_response_id: first.id }).catch((e) => e)
    await client.responses.delete(first.id)
    const gone = await client.responses.retrieve(first.id).catch((e) => e)
    return { text: first.output_text, status: first.status, next: next.output_text, again: again.output[0].content[0].text, stale: stale.status, gone: gone.constructor.name }
  },
  async responsesStreamed() {
    const kinds = []
    let last = -1
    const stream = await client.responses.create({ model: 'main', input: 'hi', stream: true })
    let text = '', final
    for await (const event of stream) {
      if (event.sequence_number !== last + 1) throw new Error('out of order')
      last = event.sequence_number
      if (event.type !== kinds.at(-1)) kinds.push(event.type) // deltas that come as one
      if (event.type === 'response.output_text.delta') text += event.delta
      if (event.type === 'response.completed') final = event.response
    }
    return { kinds, text, final: final.output[0].content[0].text }
  },
  async responsesTools() {
    const first = await client.responses.stream({ model: 'main', input: 'hi', tools: ours }).finalResponse()
    const call = first.output.find((item) => item.type === 'function_call')
    const second = await client.responses.create({
      model: 'main', tools: ours, previous_response_id: first.id, input: [{ type: 'function_call_output', call_id: call.call_id, output: 'sun' }],
    })
    return { name: call.name, arguments: call.arguments, text: second.output_text }
  },
  async abort() {
    const stream = await client.chat.completions.create({ model: 'main', messages: hi, stream: true })
    for await (const piece of stream) {
      if (piece.choices[0]?.delta?.content) {
        stream.controller.abort()
        break
      }
    }
    return { aborted: stream.controller.signal.aborted }
  },
  async errors() {
    const out = {}
    const meet = async (name, promise) => { const e = await promise.catch((e) => e); out[name] = [e.constructor.name, e.status, e.param, e.code] }
    await meet('model', client.chat.completions.create({ model: 'nobody', messages: hi }))
    await meet('n', client.chat.completions.create({ model: 'main', messages: hi, n: 2 }))
    await meet('image', client.chat.completions.create({ model: 'main', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] }] }))
    await meet('session', client.chat.completions.create({ model: 'main', messages: hi, metadata: { session_id: '0197e0a1-2b3c-7d4e-8f50-61728394a5b6' } }))
    await meet('input', client.responses.create({ model: 'main', input: 'hi', background: true }))
    return out
  },
  async failing() {
    const plain = await client.chat.completions.create({ model: 'main', messages: hi }).catch((e) => e)
    const stream = await client.chat.completions.create({ model: 'main', messages: hi, stream: true }).catch((e) => e)
    return { plain: [plain.constructor.name, plain.status, plain.code], stream: [stream.constructor.name, stream.status, stream.code] }
  },
  async failsMidway() {
    const stream = await client.chat.completions.create({ model: 'main', messages: hi, stream: true })
    let text = ''
    try {
      for await (const piece of stream) text += piece.choices[0]?.delta?.content ?? ''
    } catch (e) {
      return { text, error: e.constructor.name, code: e.code }
    }
    return { text }
  },
}

console.log(JSON.stringify(await cases[which]()))
