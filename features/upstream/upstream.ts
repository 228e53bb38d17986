/** Proxies requests for prompts, resources and the like to the upstream servers of the tools. */
import type { EdgeFeature } from "../../core/feature.ts";
import type { CallContext, CallRequest, Method, ProxiedFeatures, Tool } from "../../core/tools/index.ts";

interface Options {
  contextOf(request: CallRequest): CallContext;
  /** Whether the deployment reports changes of resources. */
  reportsChanges: boolean;
}

/** What the upstream servers of these tools offer besides tools; undefined if there are no such servers. */
export function proxiedBy(tools: readonly Tool[]): ProxiedFeatures | undefined {
  const servers = [...new Set(tools.flatMap((tool) => tool.upstream ?? []))];
  return servers[0]?.combine(servers);
}

export function upstream(proxiedFeatures: ProxiedFeatures, { contextOf, reportsChanges }: Options): EdgeFeature {
  const { capabilities, prompts, resources, resourceTemplates } = proxiedFeatures;
  const { resources: resourceCapabilities, ...others } = capabilities;
  const methodOf = (method: string): Method => ({
    // A request that is proxied starts a job.
    cost: () => ({ access: ["write"] }),
    handle: (params, request) => proxiedFeatures.methods[method]?.(params, contextOf(request)) as Promise<object>,
  });
  const proxiedMethods = Object.keys(proxiedFeatures.methods).filter((method) => method !== "resources/read");
  return {
    name: "upstream",
    methods: Object.fromEntries(proxiedMethods.map((method) => [method, methodOf(method)])),
    // Subscriptions to resources are served together with those to tasks.
    capabilities: (era) => ({
      ...others,
      ...(era === "modern" && reportsChanges && { resources: resourceCapabilities ?? {} }),
    }),
    listing: {
      "resources/list": { resources },
      "resources/templates/list": { resourceTemplates },
      ...(capabilities.prompts && { "prompts/list": { prompts } }),
    },
    resources: {
      costOf(uri) {
        const weight = proxiedFeatures.weightOfRead(uri);
        return weight > 0 ? { access: ["write"], weight } : undefined;
      },
      read: (uri, request) => methodOf("resources/read").handle?.({ uri }, request) as Promise<object>,
    },
  };
}
