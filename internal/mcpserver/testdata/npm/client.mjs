// A client of the official SDK: over standard input and output (a program and its arguments), or over HTTP (an address). It lists the tools, reads a file,
// starts a session, and writes what came of it as one JSON object.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http://") ? new StreamableHTTPClientTransport(new URL(target)) :
  new StdioClientTransport({ command: target, args, env: process.env, cwd: process.env.WORKSPACE });
const client = new Client({ name: "npm", version: "1" }, { capabilities: { elicitation: {} } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  asked.push(params.message);
  return { action: "accept", content: { decision: "allow" } };
});
await client.connect(transport);
const { tools } = await client.listTools();
const read = await client.callTool({ name: "files__read_file", arguments: { path: "a.txt" } });
const secret = await client.callTool({ name: "files__read_file", arguments: { path: ".env" } });
const progress = [];
const started = await client.callTool({ name: "start_session", arguments: { prompt: "write it", wait: 60 } }, undefined, { onprogress: (p) => progress.push(p.message) });
await client.close();
process.stdout.write(JSON.stringify({ tools: tools.map((tool) => tool.name), read, secret, started, asked, progress }) + "\n");
