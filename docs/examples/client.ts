import { createClient } from "../../client/index.ts";
import { release } from "./release/release.ts";

const { MCP_URL = "http://127.0.0.1:8787/mcp", MCP_TOKEN: token } = process.env;
await using jobs = createClient({ url: MCP_URL, token, tools: { release } });
const job = await jobs.start("release", { version: "1.3" }); // the arguments are typed
for await (const { waiting_for = [] } of jobs.follow(job)) {
  for (const { question } of waiting_for) await jobs.answer(job, question, { approved: true });
}
export const { released_at } = await jobs.wait(job); // the result is, too
