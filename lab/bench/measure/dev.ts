/** How long `npm run dev` takes to serve an edit: from the write of the file to an answer of the new version. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { launch } from "../../../test/launcher/launcher.ts";
import { copyProject } from "../../../test/launcher/project.ts";
import { until } from "../../../testing/stack/program.ts";
import { atMost, type Figure, figure, spreadOf } from "../report/figures.ts";

const DEFINITION = "tools/timer/timer.ts";
const FUNCTION = "tools/timer/timer.run.ts";

export async function measureEdits(rounds: number): Promise<Figure[]> {
  await using project = await copyProject();
  await using launcher = await launch({ command: "dev", args: ["--memory"], via: "node", cwd: project.path });
  await launcher.printed("Ready.");
  const client = new Client({ name: "author", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(launcher.url)));

  /** Edits a file; resolves with the time until `isServed`, in milliseconds. */
  async function edited(file: string, from: string, to: string, isServed: () => Promise<boolean>): Promise<number> {
    const path = join(project.path, file);
    const source = await readFile(path, "utf8");
    if (!source.includes(from)) throw new Error(`${from} does not stand in ${file}`);
    const start = performance.now();
    await writeFile(path, source.replace(from, to));
    await until("the edit to be served", isServed, 60_000);
    const took = performance.now() - start;
    await new Promise((resolve) => setTimeout(resolve, 2_000)); // until the earlier version has ended
    return took;
  }

  const definitions: number[] = [];
  const functions: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const title = (of: number) => `title: "Set a timer${of ? ` ${of}` : ""}"`;
    definitions.push(
      await edited(DEFINITION, title(round - 1), title(round), async () => {
        const { tools } = await client.listTools();
        return tools.some((tool) => tool.title?.endsWith(` timer ${round}`));
      }),
    );
    const result = (of: number) => `return "complete${of || ""}";`;
    functions.push(
      await edited(FUNCTION, result(round - 1), result(round), async () => {
        return launcher.output().split("the new version (").length > 2 * round;
      }),
    );
  }
  await client.close();
  return [
    figure("`npm run dev`: an edited definition is served", "ms", spreadOf(definitions), atMost(2_000)),
    figure("`npm run dev`: an edited durable function runs", "ms", spreadOf(functions), atMost(2_000)),
  ];
}
