/** Large answers, collected completely in both ways although the worker is killed while it stores them. */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Random } from "../../test/support/random.ts";
import { byResource, byTool } from "../../test/wrap/collect.ts";
import { connect, structuredOf, wrappedStack } from "../../test/wrap/support.ts";

const TOOLS = ["text", "image", "report"];
/** The size, in units of that in the tests: a text of 5 MB. */
const SIZE = "5";

export async function large(seed: number, rounds: number): Promise<string[]> {
  console.log(`large --seed ${seed} --rounds ${rounds}`);
  const random = new Random(seed);
  const problems: string[] = [];
  const options = { command: process.execPath, args: [join(process.cwd(), "test/wrap/large.ts")], env: { SIZE } };
  await using stack = await wrappedStack({ name: "large", ...options, after: 500 }, { bindings: { RATE_LIMIT: "0" } });
  const through = await connect(stack.url);
  const direct = new Client({ name: "test", version: "1.0.0" });
  await direct.connect(new StdioClientTransport({ ...options, stderr: "ignore", maxBufferSize: 20_000_000 }));
  const [worker] = stack.workers;
  for (const name of TOOLS) {
    const whole = JSON.stringify(await direct.callTool({ name, arguments: {} }));
    for (let round = 0; round < rounds; round++) {
      const job_name = `large.${name}.${round}`;
      const called = through.callTool({ name, arguments: { job_name: String(round) } });
      // The first round has no kill. In the others the worker is killed while it receives or stores the answer.
      const wait = round === 0 ? undefined : random.int(20, 500);
      if (wait !== undefined) {
        await delay(wait);
        await worker?.kill();
        await worker?.start();
      }
      await called;
      const began = performance.now();
      const args = { job_names: [job_name], timeout_seconds: 60 };
      const ended = structuredOf(
        await through.callTool({ name: "await_result", arguments: args }, { timeout: 90_000 }),
      );
      const { uri, characters } = ended.summaries?.[job_name] ?? {};
      if (uri === undefined) {
        problems.push(`${job_name}: ${JSON.stringify(ended).slice(0, 500)}`);
        continue;
      }
      const ways = round === 0 ? [byResource(through, uri), byTool(through, job_name)] : [byResource(through, uri)];
      const texts = await Promise.all(ways);
      if (texts.some((text) => text !== whole)) problems.push(`${job_name} is not what the server answers`);
      const took = Math.round(performance.now() - began);
      const killed = wait === undefined ? "" : `, killed ${wait} ms after the call`;
      console.log(`${job_name}: ${characters} characters collected after ${took} ms${killed}`);
    }
  }
  await Promise.all([through.close(), direct.close()]);
  return problems;
}
