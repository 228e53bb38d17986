/** Passes requests for prompts, resources and the like on to the servers behind the tools. */
import type { EdgeFeature } from "../../core/feature.ts";
import type { CallRequest } from "../../core/tools/call-feature.ts";
import type { Method } from "../../core/tools/method.ts";
import type { CallContext, Passed, Tool } from "../../core/tools/tool.ts";

interface Options {
  contextOf(request: CallRequest): CallContext;
  /** Whether the deployment reports changes of resources. */
  reportsChanges: boolean;
}

/** What the servers behind these tools serve besides tools; undefined if there are no such servers. */
export function proxiedBy(tools: readonly Tool[]): Passed | undefined {
  const servers = [...new Set(tools.flatMap(({ behind }) => behind ?? []))];
  return servers[0]?.together(servers);
}

export function upstream(passed: Passed, { contextOf, reportsChanges }: Options): EdgeFeature {
  const { capabilities, prompts, resources, resourceTemplates } = passed;
  const { resources: ofResources, ...others } = capabilities;
  const methodOf = (method: string): Method => ({
    // A request that is passed on starts a job.
    cost: () => ({ access: ["write"] }),
    handle: (params, request) => passed.methods[method]?.(params, contextOf(request)) as Promise<object>,
  });
  const proxied = Object.keys(passed.methods).filter((method) => method !== "resources/read");
  return {
    name: "upstream",
    methods: Object.fromEntries(proxied.map((method) => [method, methodOf(method)])),
    // Subscriptions to resources are served together with those to tasks.
    capabilities: (era) => ({ ...others, ...(era === "modern" && reportsChanges && { resources: ofResources ?? {} }) }),
    listing: {
      "resources/list": { resources },
      "resources/templates/list": { resourceTemplates },
      ...(capabilities.prompts && { "prompts/list": { prompts } }),
    },
    resources: {
      costOf(uri) {
        const weight = passed.weightOfRead(uri);
        return weight > 0 ? { access: ["write"], weight } : undefined;
      },
      read: (uri, request) => methodOf("resources/read").handle?.({ uri }, request) as Promise<object>,
    },
  };
}
