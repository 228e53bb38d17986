/** Proxies requests for prompts, resources and the like to the upstream servers of the tools. */
import type { EdgeFeature } from "../../core/feature.ts";
import { isRecord } from "../../core/resonate/index.ts";
import {
  ANSWER_SUBJECT,
  type CallContext,
  type CallRequest,
  isToolAnswer,
  type Method,
  type ProxiedFeatures,
  type Tool,
  type ToolAnswer,
} from "../../core/tools/index.ts";

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

/** The answer for a client of the 2025 revisions, which knows objects only: any other value is the field `result` of one. */
function legacyAnswer(answer: ToolAnswer, { legacyOutputSchema }: Tool): ToolAnswer {
  const { structuredContent, [ANSWER_SUBJECT]: subject } = answer;
  const isWrapped = legacyOutputSchema !== undefined || !isRecord(structuredContent);
  if (structuredContent === undefined || subject?.isView || !isWrapped) return answer;
  return { ...answer, structuredContent: { result: structuredContent } };
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
    call: (tool) => {
      if (!tool.upstream) return undefined;
      return async (call, next) => {
        const result = await next();
        return isToolAnswer(result) && !call.request.cancelsByLeaving ? legacyAnswer(result, tool) : result;
      };
    },
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
