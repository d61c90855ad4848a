// The JavaScript library of Standard Webhooks verifies a delivery from standard input, and refuses it once a byte is changed.
import { readFileSync } from 'node:fs'
import { Webhook } from '../../compat/testdata/npm/node_modules/standardwebhooks/dist/index.js'

const { secret, headers, body } = JSON.parse(readFileSync(0, 'utf8'))
const webhook = new Webhook(secret)
const read = webhook.verify(body, headers)
let forged = 'accepted'
try {
  webhook.verify(body.replace('approval', 'finished'), headers)
} catch (error) {
  forged = error.message
}
console.log(JSON.stringify({ id: headers['webhook-id'], same: read.id === headers['webhook-id'], type: read.type, object: read.object_id, title: read.title, forged }))
