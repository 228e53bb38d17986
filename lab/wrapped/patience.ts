/** A tool that takes minutes, called by clients that give up after five seconds; another client collects the result. */
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COUNTING, serve } from "../../test/wrap/servers.ts";
import { connect, structuredOf, wrappedStack } from "../../test/wrap/support.ts";

/** How long the clients wait before they give up, in milliseconds. */
const GIVES_UP = 5_000;

export async function patience(minutes: number): Promise<string[]> {
  const ms = minutes * 60_000;
  const file = join(await mkdtemp(join(tmpdir(), "counting-")), "calls");
  await using server = await serve(COUNTING, [], { CALLS: file });
  // The second server makes calls wait longer than the client does, so that the client gets no answer.
  await using prompt = await wrappedStack({ name: "prompt", url: server.url, allowPrivate: true });
  await using late = await wrappedStack({ name: "late", url: server.url, allowPrivate: true, after: 300_000 });
  const problems: string[] = [];
  const began = Date.now();

  const give = async (url: string, id: string) => {
    const client = await connect(url);
    const args = { id, ms, job_name: id };
    const said = await client.callTool({ name: "write", arguments: args }, { timeout: GIVES_UP }).then(
      (result) => String(structuredOf(result).note),
      (error: Error) => error.message,
    );
    console.log(`${id}: after ${Date.now() - began} ms the client has ${JSON.stringify(said)}`);
    await client.close();
    return said;
  };
  await give(prompt.url, "told");
  if (!/timed out/i.test(await give(late.url, "untold"))) problems.push("the second client did not give up");

  const collect = async (url: string, name: string, text: string) => {
    const client = await connect(url);
    while (Date.now() - began < 2 * ms + 60_000) {
      const args = { job_names: [name], timeout_seconds: 30 };
      const found = structuredOf(await client.callTool({ name: "await_result", arguments: args }, { timeout: 60_000 }));
      if (found.running?.length > 0) continue;
      const result = JSON.stringify(found.results?.[name]);
      if (!result?.includes(text)) problems.push(`${name} brought ${JSON.stringify(found)}`);
      console.log(`${name} collected after ${Math.round((Date.now() - began) / 1_000)} s`);
      return client.close();
    }
    problems.push(`${name} did not end`);
  };
  await Promise.all([
    collect(prompt.url, "prompt.write.told", "write told is done"),
    collect(late.url, "late.write.untold", "write untold is done"),
  ]);
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  if (lines.toSorted().join() !== "write told,write untold")
    problems.push(`the server was called: ${lines.join(", ")}`);
  return problems;
}
