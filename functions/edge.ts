/** `durable-mcp-edge/edge`: a stateless Worker that answers MCP requests. */

import { conflicts, type Job } from "../core/author/index.ts";
import type { Tool } from "../core/tools/index.ts";
import { CARD_TOOLS } from "../features/cards/card.ts";
import { problemInDefinition } from "../features/schedules/form.ts";
import { schedule } from "../features/schedules/schedule.ts";
import { createApp } from "./app.ts";
import { builtIn } from "./built-in.ts";
import { instructionsOf } from "./mcp/identity.ts";
import { definitions } from "./objects/definitions.ts";

export { CallerObject, resonateObject, runnerObject } from "./objects/lazy-objects.ts";
export { Listener } from "./objects/listener.ts";

/**
 * The description of a server, and its tools.
 *
 * @example
 * const options: EdgeOptions = { name: "my-server", title: "My server", version: "1.0.0", tools: [waitForSite] };
 */
export interface EdgeOptions {
  /** The name for programs: letters, digits, `-`, `_` and `.`. */
  name: string;
  /** The name for people. Default: `name`. */
  title?: string;
  version: string;
  /** The purpose of the server, for people who choose among servers: up to 100 characters. Default: the title. */
  description?: string;
  /** What a model must know about these tools besides their descriptions. It precedes the general instructions. */
  instructions?: string;
  websiteUrl?: string;
  /** The tools, in the order of `tools/list`. */
  tools: readonly Tool[];
  /** Jobs without a tool, which the functions of other jobs start. They are found by their names, and have pages. */
  jobs?: readonly Job[];
}

/**
 * The default export of a Worker.
 *
 * @example
 * const edge: EdgeWorker = createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] });
 */
export interface EdgeWorker {
  fetch(request: Request, env: object, context: object): Response | Promise<Response>;
}

/**
 * Makes the edge of a deployment. It serves MCP at `/mcp`: the deployment's tools, and the built-in tools for jobs.
 *
 * @throws {Error} naming all conflicts between tools or jobs, schedules that cannot be, and a description that is too long
 *
 * @example
 * export default createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] });
 */
export function createEdge(options: EdgeOptions): EdgeWorker {
  const { name, title = name, version, description = title, instructions, websiteUrl, tools } = options;
  const jobsOfTools = tools.flatMap(({ job }) => job ?? []);
  const jobs = [...new Set([...jobsOfTools, ...((options.jobs ?? []) as Job[]), schedule as Job])];
  const all = [...tools, ...builtIn(jobs, tools)];
  const problems = [...conflicts(jobs), ...duplicates([...all.map((tool) => tool.name), ...CARD_TOOLS])];
  for (const tool of tools) {
    const problem = tool.schedule && problemInDefinition(tool.name, tool.schedule);
    if (problem !== undefined) problems.push(problem);
  }
  if (description.length > 100)
    problems.push(`The description has ${description.length} characters; up to 100 are possible.`);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  Object.assign(definitions, { jobs, tools });
  const info = { name, title, version, ...(websiteUrl !== undefined && { websiteUrl }) };
  return createApp({
    jobs,
    tools: all,
    identity: { info, description, instructions: instructionsOf(all, instructions) },
  }) as EdgeWorker;
}

function duplicates(names: readonly string[]): string[] {
  const repeated = new Set(names.filter((name, i) => names.indexOf(name) !== i));
  return [...repeated].map(
    (name) => `Two tools are called ${name}, built-in ones included. Give a wrapped server a prefix.`,
  );
}
