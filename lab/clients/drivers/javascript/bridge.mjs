/**
 * A client in another language: `node bridge.mjs PROGRAM ARG…`. The program reads one line of JSON per request,
 * `{"list":true}` or `{"name":…,"args":{…}}`, and writes one per answer, `{"result":…}` or `{"error":"…"}`.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { drive } from "./steps.mjs";

const [program, ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

async function ask(request) {
  child.stdin.write(`${JSON.stringify(request)}\n`);
  const { value, done } = await answers.next();
  if (done) throw new Error("the program ended");
  const { result, error } = JSON.parse(value);
  if (error) throw new Error(error);
  return result;
}

await drive({
  list: async () => (await ask({ list: true })).tools.map(({ name }) => name),
  call: (name, args) => ask({ name, args }),
});
child.stdin.end();
child.kill();
