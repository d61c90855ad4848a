// Vercel's AI SDK talks to the endpoint with each major of its Anthropic provider: each case prints what came of it, and the test compares.
const [, , url, major, which, key] = process.argv
const [{ createAnthropic }, ai] = await Promise.all(major === '3' ? [import('@ai-sdk/anthropic-3'), import('ai-6')] : [import('@ai-sdk/anthropic'), import('ai')])
const { z } = await import('zod')
const model = createAnthropic({ baseURL: url, apiKey: key ?? 'unused' })('main')
globalThis.AI_SDK_LOG_WARNINGS = false
const places = []
const tools = {
  get_weather: ai.tool({
    description: 'the weather of a place', inputSchema: z.object({ place: z.string() }),
    execute: async ({ place }) => { places.push(place); return 'sun in ' + place },
  }),
}
const loop = { model, tools, prompt: 'weather?', stopWhen: ai.stepCountIs(5) }
const cases = {
  async generate() {
    const out = await ai.generateText({ model, system: 'Be brief.', prompt: 'hi' })
    return { text: out.text, finish: out.finishReason, usage: out.usage.inputTokens > 0 }
  },
  async stream() {
    const out = ai.streamText({ model, prompt: 'hi' })
    let pieces = ''
    for await (const piece of out.textStream) pieces += piece
    return { pieces, finish: await out.finishReason }
  },
  async tools() {
    const out = await ai.generateText(loop)
    const more = await ai.generateText({ model, tools, messages: [{ role: 'user', content: 'weather?' }, ...(out.responseMessages ?? out.response.messages), { role: 'user', content: 'and then?' }] })
    return { text: out.text, steps: out.steps.length, places, more: more.text }
  },
  async toolsStreamed() {
    const out = ai.streamText(loop)
    return { text: await out.text, steps: (await out.steps).length, places }
  },
}
console.log(JSON.stringify(await cases[which]()))
