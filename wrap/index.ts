/** `durable-mcp-edge/wrap`: the tools of an existing server as durable tools. */

import type { Job } from "../core/author/job.ts";
import type { Tool } from "../core/tools/tool.ts";
import type { Worker } from "./at-once.ts";
import { serverBehind } from "./behind/together.ts";
import { type CallArgs, callJob } from "./call-job.ts";
import { policyOf } from "./policy.ts";
import { chosen, type Snapshot } from "./snapshot.ts";
import { checkOptions, type WrapOptions } from "./wrap-options.ts";
import { wrappedTool } from "./wrapped-tool.ts";

export { instructionsIn, type Listed, type ListedTool, type Lists, type Offer, type Snapshot } from "./snapshot.ts";
export type { CallPolicy, WrapOptions } from "./wrap-options.ts";

/**
 * An existing server whose calls are durable jobs.
 *
 * @example
 * const toolsOf = (acme: Wrapped, snapshot: Snapshot): readonly Tool[] => acme.tools(snapshot);
 */
export interface Wrapped {
  readonly options: WrapOptions;
  /** The jobs of its calls: `own` belong to one caller, `shared` to all callers. */
  readonly jobs: { readonly own: Job<CallArgs>; readonly shared: Job<CallArgs> };
  /** `worker`: the only worker of the deployment, if the edge reaches it directly. */
  tools(snapshot: Snapshot, worker?: Worker): readonly Tool[];
}

/**
 * Makes the tools of an existing server durable jobs, without changing the server. The edge lists the tools from a snapshot,
 * which `durable-mcp-edge sync` writes; only workers reach the server, with `runWrapped`.
 *
 * @throws {Error} for invalid options
 *
 * @example
 * export const acme = wrapServer({ name: "acme", command: "python", args: ["server.py"] });
 */
export function wrapServer(options: WrapOptions): Wrapped {
  checkOptions(options);
  const { name, apps = false } = options;
  const kind = `wrapped_${name.replaceAll("-", "_")}`;
  const own = callJob(kind, `${name}.`, { shared: false, apps });
  const shared = callJob(`${kind}_shared`, `${name}_shared.`, { shared: true, apps });
  return {
    options,
    jobs: { own, shared },
    tools(snapshot, worker) {
      const behind = serverBehind({ jobs: [own, shared], snapshot, options });
      const heldBack = snapshot.held && { server: name, lines: snapshot.held };
      return chosen(snapshot, options).tools.map((tool) => {
        const policy = policyOf(tool, options);
        return {
          ...wrappedTool(tool, policy, options, policy.shared ? shared : own, behind, worker),
          ...(heldBack && { heldBack }),
          ...(snapshot.acceptances && { acceptances: snapshot.acceptances }),
        };
      });
    },
  };
}
