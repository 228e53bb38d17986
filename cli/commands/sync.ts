/** `sync`: updates the snapshots of wrapped servers, whose tools the edge lists. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Snapshot, WrapOptions } from "../../wrap/index.ts";
import { keyOf } from "../../wrap/snapshot.ts";
import {
  readSnapshot,
  recordAcceptance,
  updateOf,
  waitingFileOf,
  writeSnapshot,
  writeUpdate,
} from "../../wrap/worker/snapshot-file.ts";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { readArguments, usageOf } from "../arguments.ts";
import { commandLine, readProject } from "../project.ts";
import { print } from "../terminal/print.ts";
import { thisUser } from "../this-user.ts";
import { wrappedServers } from "../wrap/registry.ts";
import { silentLog } from "../wrap/silent-log.ts";
import { changes, checkChosen, omissions, policyTable } from "../wrap/table.ts";
import { hideArguments, OPTIONS, wrapArguments } from "../wrap/wrap-arguments.ts";
import { wrapFolders } from "../wrap/wrap-directory.ts";

export const usage = usageOf(
  ["[--accept [TOOL ...]]", "URL [options]", "[options] -- COMMAND ..."],
  `Fetches the tools of every server that the project in this folder wraps, shows the changes, and writes those that narrow:
a tool that has or accepts less, or was removed. --accept also writes the others: new tools, other texts, looser schemas,
hints that a tool is safe; with names, only those of the named tools. If \`wrap\` was started in this folder, --accept
accepts the changes that it has shown. With a URL or a command, sync adds that server to the project.`,
  OPTIONS,
);

export async function run(args: string[]): Promise<void> {
  const [flag, ...accept] = args;
  const isAccepting = flag === "--accept";
  if (flag !== undefined && !isAccepting) return add(args);
  const acceptsAll = isAccepting && accept.length === 0;
  const unmatchedNames = new Set(accept);
  const own = await wrappedServers(readProject());
  const all =
    own.length > 0 ? own : (await Promise.all(wrapFolders().map((root) => wrappedServers(readProject(root))))).flat();
  if (all.length === 0)
    throw new Error(`This project wraps no server. Type: ${commandLine(readProject(), "sync", "URL")}`);
  for (const { options, snapshot: file } of all) {
    if (file === undefined) throw new Error(`${options.name}: runWrapped has no path for its snapshot.`);
    const before = await readSnapshot(file);
    // The changes that a run has shown are accepted, not those that the server may have made since.
    const unapproved = isAccepting || own.length === 0 ? await readSnapshot(waitingFileOf(file)) : undefined;
    const now = unapproved ?? (own.length > 0 ? await fetchSnapshot(options) : before);
    if (now === undefined) continue;
    const update = updateOf(before, now, { follow: acceptsAll || options.follow === true, accept }, true);
    if (isAccepting && before && update.changes.length > 0)
      recordAcceptance(update, before, { server: options.name, by: thisUser() ?? "unknown" });
    for (const { name } of now.tools) unmatchedNames.delete(name);
    for (const entry of Object.values(now.lists).flat()) unmatchedNames.delete(keyOf(entry));
    await writeUpdate(file, update, now);
    const isSame = update.changes.length + update.unapprovedChanges.length === 0;
    print(`${options.name}: ${now.tools.length} tools, ${before ? (isSame ? "as it was" : "changed") : "written"}`);
    for (const line of changes(update, commandLine(readProject(), "sync", "--accept"))) print(line);
    for (const line of omissions(update.snapshot, options)) print(line);
  }
  if (unmatchedNames.size > 0) {
    const names = [...unmatchedNames].map((name) => JSON.stringify(name)).join(", ");
    throw new Error(
      `No server that is wrapped here lists ${names}. Type ${commandLine(readProject(), "sync")} for what waits.`,
    );
  }
}

async function fetchSnapshot(options: WrapOptions, env: NodeJS.ProcessEnv = process.env): Promise<Snapshot> {
  const server = new WrappedServer(options, env);
  return server.currentSnapshot(silentLog).finally(() => server.close());
}

async function add(args: string[]): Promise<void> {
  const request = readArguments(() => wrapArguments(args, process.env, { hidesUrl: true }));
  hideArguments(request);
  const { options, secrets } = request;
  const { cwd: _, ...definition } = options;
  const { name } = options;
  const folder = join("tools", name);
  if (existsSync(folder)) throw new Error(`${folder} is there already. Type: ${commandLine(readProject(), "sync")}`);
  const snapshot = await fetchSnapshot(options, { ...process.env, ...secrets });
  for (const line of omissions(snapshot, options)) print(line);
  checkChosen(snapshot, options);
  const code = name.replace(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, `${name}.ts`),
    `import { wrapServer } from "durable-mcp-edge/wrap";\n\nexport const ${code} = wrapServer(${JSON.stringify(definition, undefined, 2)});\n`,
  );
  await writeFile(
    join(folder, `${name}.run.ts`),
    `import { runWrapped } from "durable-mcp-edge/wrap/worker";\nimport { ${code} } from "./${name}.ts";\n\nexport const ${code}Runs = runWrapped(${code}, { snapshot: new URL("./${name}.snapshot.ts", import.meta.url) });\n`,
  );
  await writeSnapshot(pathToFileURL(join(folder, `${name}.snapshot.ts`)), snapshot);
  for (const line of policyTable(snapshot, options)) print(`  ${line}`);
  print(`
${folder} holds it. Name it in the two lists:

  tools/index.ts   import { ${code} } from "./${name}/${name}.ts";
                   import ${code}Snapshot from "./${name}/${name}.snapshot.ts";
                   … ...${code}.tools(${code}Snapshot)
  tools/runs.ts    import { ${code}Runs } from "./${name}/${name}.run.ts";
                   … ...${code}Runs
`);
  for (const [variable] of Object.entries(secrets))
    print(`The worker's environment needs ${variable}: the value that you gave, which is in no file.`);
}
