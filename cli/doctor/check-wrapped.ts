/** Checks that the servers that a project wraps answer, and that the edge lists their current tools. */
import { readSnapshot, updateOf } from "../../wrap/worker/snapshot-file.ts";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { commandLine, readProject } from "../project.ts";
import { wrappedServers } from "../wrap/registry.ts";
import { silentLog } from "../wrap/silent-log.ts";
import { omissions, policyTable } from "../wrap/table.ts";
import { type Finding, findings, whyNot } from "./finding.ts";

export async function* checkWrapped(root: string): AsyncGenerator<Finding> {
  for (const { options, snapshot: file } of await wrappedServers(readProject(root))) {
    const { ok, warning, failed } = findings(`wrapped ${options.name}`);
    const server = new WrappedServer(options, process.env);
    try {
      const now = await server.currentSnapshot(silentLog);
      const { name, version } = now.server;
      const table = policyTable(now, options).map((line) => `\n${" ".repeat(31)} ${line}`);
      yield ok(`${name} ${version}, revision ${now.revision}, ${now.tools.length} tools${table.join("")}`);
      const sync = (option = "") =>
        `Type: ${commandLine(readProject(root), "sync", option)}, and deploy the edge again.`;
      const { changes, unapprovedChanges } = updateOf(file && (await readSnapshot(file)), now, options);
      const listing = (words: string, lines: string[]) =>
        `${words}:${lines.map((line) => `\n${" ".repeat(31)} ${line}`).join("")}`;
      if (changes.length > 0) yield warning(listing("its tools are not those that the edge lists", changes), sync());
      if (unapprovedChanges.length > 0)
        yield warning(listing("its tools are not those that you agreed to", unapprovedChanges), sync("--accept"));
      for (const line of omissions(now, options)) yield warning(line, "Leave it out with `tools`, if that is meant.");
    } catch (error) {
      yield failed(
        whyNot(error),
        "Check its url or command, and that this shell has the variables that the worker's environment has.",
      );
    } finally {
      await server.close();
    }
  }
}
