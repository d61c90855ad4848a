// An editor of lines: it starts the agent of its arguments with the official SDK, sends what it reads as {"id", "method", "params"} (a notification has no
// id), answers what it is asked with the next {"outcome"} that it reads, and writes what comes.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { client, ndJsonStream } from "@agentclientprotocol/sdk";

const out = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const agent = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
agent.on("exit", (code, signal) => out({ exit: signal ?? code }));
out({ pid: agent.pid });
const waiting = [];
const app = client({ name: "editor" })
  .onNotification("session/update", ({ params }) => out({ update: params.update, session: params.sessionId }))
  .onRequest("session/request_permission", ({ params, signal }) => new Promise((resolve, reject) => {
    const entry = { resolve };
    waiting.push(entry);
    out({ permission: params });
    signal?.addEventListener("abort", () => {
      waiting.splice(waiting.indexOf(entry), 1);
      out({ withdrawn: params.toolCall.toolCallId });
      reject(new Error("withdrawn"));
    });
  }));
const connection = app.connect(ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)));
for await (const line of createInterface({ input: process.stdin })) {
  const said = JSON.parse(line);
  if (said.outcome) {
    waiting.shift().resolve(said);
  } else if (said.id === undefined) {
    await connection.agent.notify(said.method, said.params);
  } else {
    connection.agent.request(said.method, said.params).then((result) => out({ id: said.id, result }), (error) => out({ id: said.id, error: { code: error.code, message: error.message } }));
  }
}
connection.close?.();
agent.stdin.end();
