/** mcporter's runtime. */
import { createRuntime } from "mcporter";
import { drive, headers, url } from "./steps.mjs";

const runtime = await createRuntime({
  servers: [{ name: "s", command: { kind: "http", url: new URL(url), headers } }],
});
await drive({
  list: async () => (await runtime.listTools("s")).map(({ name }) => name),
  call: (name, args) => runtime.callTool("s", name, { args }),
});
await runtime.close();
process.exit(0);
