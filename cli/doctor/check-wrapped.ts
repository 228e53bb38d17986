/** Checks the servers that a project wraps: whether they answer, and whether the edge lists their current tools. */
import { readSnapshot } from "../../wrap/worker/snapshot-file.ts";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { readProject, typed } from "../project.ts";
import { wrappedBy } from "../wrap/registry.ts";
import { silentLog } from "../wrap/silent-log.ts";
import { changes, leftOut, policyTable } from "../wrap/table.ts";
import { type Finding, failed, ok, warning, whyNot } from "./finding.ts";

/** `root`: the folder of the project. */
export async function* checkWrapped(root: string): AsyncGenerator<Finding> {
  for (const { options, snapshot: file } of await wrappedBy(readProject(root))) {
    const check = `wrapped ${options.name}`;
    const server = new WrappedServer(options, process.env);
    try {
      const now = await server.look(silentLog);
      const { name, version } = now.server;
      const table = policyTable(now, options).map((line) => `\n${" ".repeat(31)} ${line}`);
      yield ok(check, `${name} ${version}, revision ${now.revision}, ${now.tools.length} tools${table.join("")}`);
      const sync = `Type: ${typed(readProject(root), "sync")}, and deploy the edge again.`;
      const said = changes(file && (await readSnapshot(file)), now);
      if (said.length > 0)
        yield warning(check, `its tools are not those that the edge lists: ${said.join(", ")}`, sync);
      for (const line of leftOut(now, options))
        yield warning(check, line, "Leave it out with `tools`, if that is meant.");
    } catch (error) {
      yield failed(
        check,
        whyNot(error),
        "Check its url or command, and that this shell has the variables that the worker's environment has.",
      );
    } finally {
      await server.close();
    }
  }
}
