/** `sync`: updates the snapshots of the tools of wrapped servers, which the edge lists. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { readSnapshot, writeSnapshot } from "../../wrap/worker/snapshot-file.ts";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { wrappedBy } from "../wrap/registry.ts";
import { silentLog } from "../wrap/silent-log.ts";
import { changes, checkChosen, leftOut, policyTable } from "../wrap/table.ts";
import { hideArguments, OPTIONS, wrapArguments } from "../wrap/wrap-arguments.ts";

const usage = () => `Usage: ${typed(readProject(), "sync")}
       ${typed(readProject(), "sync", "URL [options]")}
       ${typed(readProject(), "sync", "[options] -- COMMAND ...")}

Fetches the tools of every server that the project in this folder wraps, and writes their snapshots. With a URL or a command
it adds that server to the project.

${OPTIONS.map(([option, text]) => `  ${option.padEnd(25)} ${text}`).join("\n")}
  --help                    show this text
`;

export async function run(args: string[]): Promise<void> {
  if (args.includes("--help")) return console.log(usage());
  if (args.length > 0) return add(args);
  const all = await wrappedBy(readProject());
  if (all.length === 0) throw new Error(`This project wraps no server. Type: ${typed(readProject(), "sync", "URL")}`);
  for (const { options, snapshot: file } of all) {
    const server = new WrappedServer(options, process.env);
    const now = await server.look(silentLog);
    await server.close();
    if (file === undefined) throw new Error(`${options.name}: runWrapped has no path for its snapshot.`);
    const before = await readSnapshot(file);
    await writeSnapshot(file, now);
    const said = changes(before, now);
    const what = before === undefined ? "written" : said.length === 0 ? "as it was" : said.join(", ");
    console.log(`${options.name}: ${now.tools.length} tools, ${what}`);
    for (const line of leftOut(now, options)) console.log(line);
  }
}

async function add(args: string[]): Promise<void> {
  const given = readArguments(() => wrapArguments(args, process.env), usage());
  if (!given) return;
  hideArguments(given);
  const { options, secrets } = given;
  const { cwd: _, ...kept } = options;
  const { name } = options;
  const folder = join("tools", name);
  if (existsSync(folder)) throw new Error(`${folder} is there already. Type: ${typed(readProject(), "sync")}`);
  const server = new WrappedServer(options, { ...process.env, ...secrets });
  const snapshot = await server.look(silentLog);
  await server.close();
  for (const line of leftOut(snapshot, options)) console.log(line);
  checkChosen(snapshot, options);
  const code = name.replace(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, `${name}.ts`),
    `import { wrapServer } from "durable-mcp-edge/wrap";\n\nexport const ${code} = wrapServer(${JSON.stringify(kept, undefined, 2)});\n`,
  );
  await writeFile(
    join(folder, `${name}.run.ts`),
    `import { runWrapped } from "durable-mcp-edge/wrap/worker";\nimport { ${code} } from "./${name}.ts";\n\nexport const ${code}Runs = runWrapped(${code}, { snapshot: new URL("./${name}.snapshot.ts", import.meta.url) });\n`,
  );
  await writeSnapshot(pathToFileURL(join(folder, `${name}.snapshot.ts`)), snapshot);
  for (const line of policyTable(snapshot, options)) console.log(`  ${line}`);
  console.log(`
${folder} holds it. Name it in the two lists:

  tools/index.ts   import { ${code} } from "./${name}/${name}.ts";
                   import ${code}Snapshot from "./${name}/${name}.snapshot.ts";
                   … ...${code}.tools(${code}Snapshot)
  tools/runs.ts    import { ${code}Runs } from "./${name}/${name}.run.ts";
                   … ...${code}Runs
`);
  for (const [variable] of Object.entries(secrets))
    console.log(`The worker's environment needs ${variable}: the value that you gave, which is in no file.`);
}
