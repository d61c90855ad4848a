// Clients that others wrote talk to the endpoint over several turns: each case prints its outcome as JSON.
import { createOpenAI } from '@ai-sdk/openai'
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, setTracingDisabled, tool as agentTool } from '@openai/agents'
import { generateText, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { z } from 'zod'

const [, , url, which] = process.argv
setTracingDisabled(true)

const sent = []
const recorded = async (address, init) => {
  sent.push(JSON.parse(init.body))
  return fetch(address, init)
}
const sdk = createOpenAI({ baseURL: url, apiKey: 'unused', fetch: recorded })
const client = new OpenAI({ baseURL: url, apiKey: 'unused', maxRetries: 0 })
const places = []
const weather = { description: 'the weather of a place', execute: async ({ place }) => { places.push(place); return 'sun' } }
const tools = { get_weather: tool({ ...weather, inputSchema: z.object({ place: z.string() }) }) }
const agentTools = [agentTool({ ...weather, name: 'get_weather', parameters: z.object({ place: z.string() }) })]
const references = () => sent.flatMap((body) => body.input).filter((item) => item.type === 'item_reference').length

async function generated(messages) {
  const { text, response } = await generateText({ model: sdk('main'), messages, tools, stopWhen: stepCountIs(4), maxRetries: 0 })
  return { text, messages: response.messages }
}

async function streamed(messages) {
  const result = streamText({ model: sdk('main'), messages, tools, stopWhen: stepCountIs(4), maxRetries: 0 })
  let text = ''
  for await (const piece of result.textStream) text += piece
  return { text, messages: (await result.response).messages }
}

async function sdkTurns(ask) {
  const messages = [{ role: 'user', content: 'hi' }]
  const first = await ask(messages)
  messages.push(...first.messages, { role: 'user', content: 'and?' })
  const second = await ask(messages)
  return { first: first.text, second: second.text, places, references: references() > 0 }
}

async function agentTurns(model) {
  const agent = new Agent({ name: 'a', instructions: 'Be brief.', model, tools: agentTools })
  const runner = new Runner()
  const first = await runner.run(agent, 'hi')
  const second = await runner.run(agent, [...first.history, { role: 'user', content: 'and?' }])
  return { first: first.finalOutput, second: second.finalOutput, places }
}

const cases = {
  generateText: () => sdkTurns(generated),
  streamText: () => sdkTurns(streamed),
  agentsChat: () => agentTurns(new OpenAIChatCompletionsModel(client, 'main')),
  agentsResponses: () => agentTurns(new OpenAIResponsesModel(client, 'main')),
}

console.log(JSON.stringify(await cases[which]()))
