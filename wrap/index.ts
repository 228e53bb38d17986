/** `durable-mcp-edge/wrap`: the tools of an existing server as durable tools. */

import type { Job } from "../core/author/index.ts";
import type { Tool } from "../core/tools/index.ts";
import type { WorkerEndpoint } from "./at-once.ts";
import { type CallArgs, callJob } from "./call-job.ts";
import { policyOf } from "./policy.ts";
import { chooseTools, type Snapshot } from "./snapshot.ts";
import { upstreamServer } from "./upstream/combine.ts";
import { checkOptions, type WrapOptions } from "./wrap-options.ts";
import { wrappedTool } from "./wrapped-tool.ts";

export { instructionsIn, type ListEntry, type ListedTool, type Lists, type Offer, type Snapshot } from "./snapshot.ts";
export type { CallPolicy, WrapOptions } from "./wrap-options.ts";

/**
 * An existing server whose calls are durable jobs.
 *
 * @example
 * const toolsOf = (acme: WrapDefinition, snapshot: Snapshot): readonly Tool[] => acme.tools(snapshot);
 */
export interface WrapDefinition {
  readonly options: WrapOptions;
  /** The jobs of its calls: `own` belong to one caller, `shared` to all callers. */
  readonly jobs: { readonly own: Job<CallArgs>; readonly shared: Job<CallArgs> };
  /** `worker`: the only worker of the deployment, if the edge reaches it directly. */
  tools(snapshot: Snapshot, worker?: WorkerEndpoint): readonly Tool[];
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
export function wrapServer(options: WrapOptions): WrapDefinition {
  checkOptions(options);
  const { name, apps = false } = options;
  const kind = `wrapped_${name.replaceAll("-", "_")}`;
  const own = callJob(kind, `${name}.`, { shared: false, apps });
  const shared = callJob(`${kind}_shared`, `${name}_shared.`, { shared: true, apps });
  return {
    options,
    jobs: { own, shared },
    tools(snapshot, worker) {
      const upstream = upstreamServer({ jobs: [own, shared], snapshot, options });
      const unapprovedChanges = snapshot.unapprovedChanges && { server: name, lines: snapshot.unapprovedChanges };
      return chooseTools(snapshot, options).tools.map((tool) => {
        const policy = policyOf(tool, options);
        const job = policy.shared ? shared : own;
        return {
          ...wrappedTool({ tool, policy, options, job, upstream, worker }),
          ...(unapprovedChanges && { unapprovedChanges }),
          ...(snapshot.acceptances && { acceptances: snapshot.acceptances }),
        };
      });
    },
  };
}
