// The conformance suite imports fs.globSync, which node has from version 22 on, and calls it only for what it does not do here. On an older one
// its import is given a stand-in that says so.
import fs from "node:fs";
import { register } from "node:module";

if (!fs.globSync) {
  const shim = "data:text/javascript," + encodeURIComponent(
    'export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => { throw new Error("fs.globSync needs node 22"); };');
  register("data:text/javascript," + encodeURIComponent(
    `export async function resolve(specifier, context, next) {
       if (specifier === "fs" && context.parentURL?.includes("/@modelcontextprotocol/conformance/")) {
         return { url: ${JSON.stringify(shim)}, shortCircuit: true };
       }
       return next(specifier, context);
     }`));
}
