/** Takes up a task in this process, from the reference that another one wrote down, and prints how it ended. */
import { openSession } from "./session.ts";

const [url = "", reference = ""] = process.argv.slice(2);
await using opened = await openSession(url, {
  onInputRequest: async () => ({ action: "accept", content: { confirm: true } }) as never,
});
const execution = await opened.session.resumeTask(JSON.parse(reference));
const { outcome } = await execution.settle();
console.log(JSON.stringify(outcome));
