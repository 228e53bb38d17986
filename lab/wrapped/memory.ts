/**
 * The memory of all processes of `wrap` while calls go through it. It must not grow, and stay below a limit. `WRAP_CHECKOUT` names
 * another checkout, or a package as `npm run build` makes it and users install it, for which Node loads no compiler.
 */
import { resolve } from "node:path";
import { sum } from "simple-statistics";
import { ownMemory } from "../../test/support/usage.ts";
import { startGenerator } from "../bench/setup/generator.ts";
import { LEGACY, mcpRequest, toolCall } from "../bench/setup/mcp.ts";
import { startWrap, treeOf } from "../bench/wrapped/wrapped.ts";

const BEHIND = `${process.execPath} ${resolve("lab/bench/wrapped/server.ts")}`;
const STEPS = 10;
/** The limit for the whole stack without the wrapped server, and for its growth in the second half, in megabytes. */
const MOST = 350;
const LEVEL = 20;

/** `durable`: whether each call has a unique name, and so becomes a job. */
export async function memory(calls: number, durable: boolean): Promise<string[]> {
  await using use = new AsyncDisposableStack();
  await using generator = startGenerator();
  const { url, program } = await startWrap(use, BEHIND, process.env.WRAP_CHECKOUT);
  const args = durable ? { job_name: "n{n}" } : {};
  const request = { url, ...mcpRequest(LEGACY, toolCall("write", args)), connections: 16, expect: '"result"' };
  const totals: number[] = [];
  let made = 0;
  const look = async () => {
    const all = (await treeOf(program.pid)).filter(({ command }) => command !== BEHIND);
    const each = all.map(({ pid, command }) => [nameOf(command), ownMemory(pid)] as const);
    const total = sum(each.map(([, mb]) => mb));
    totals.push(total);
    const listed = each.map(([name, mb]) => `${name} ${mb.toFixed(0)}`).join(", ");
    console.log(`${made} calls: ${total.toFixed(0)} MB (${listed})`);
  };
  await look();
  while (made < calls) {
    const until = made + calls / STEPS;
    while (made < until) made += (await generator.run({ ...request, seconds: 2 })).requests;
    await look();
  }
  const [half = 0, last = 0] = [totals[Math.floor(totals.length / 2)], totals.at(-1)];
  return [
    ...(last > MOST ? [`${last.toFixed(0)} MB after ${made} calls, more than ${MOST}`] : []),
    ...(last > half + LEVEL ? [`${(last - half).toFixed(0)} MB more in the second half of ${made} calls`] : []),
  ];
}

const nameOf = (command: string): string =>
  /workerd|parent-watchdog/.exec(command)?.[0] ?? /([\w-]+)\.[jt]s/.exec(command)?.[1] ?? command.slice(0, 30);
