/** The public description of a deployment, for its pages. */
import type { Tool, UnapprovedChanges } from "../../core/tools/index.ts";
import { hasLocalOperators } from "../../functions/auth/auth-config.ts";
import type { Pages } from "./sessions.ts";

export function aboutOf({ site, config, seal, issuer }: Pages) {
  const { tools, identity } = site;
  const { PUBLIC_URL, auth } = config;
  const { AUTH_MODE } = auth;
  const unapproved = AUTH_MODE === "none" && hasLocalOperators(config) ? unapprovedChanges(tools) : [];
  return {
    ...identity.info,
    description: identity.description,
    ...(PUBLIC_URL !== undefined && { url: new URL("/mcp", PUBLIC_URL).href }),
    auth: AUTH_MODE,
    ...(AUTH_MODE === "oauth" && { issuer: auth.OAUTH_ISSUER, client_id: auth.OAUTH_CLIENT_ID }),
    ...(unapproved.length > 0 && { unapproved }),
    sign_in: seal !== undefined && (AUTH_MODE === "bearer" || issuer !== undefined),
    tools: tools.map(({ job, listing: { name, title, description, inputSchema, annotations } }) => {
      return { name, ...texts({ title, description }), inputSchema, annotations, ...(job && { kind: job.kind }) };
    }),
  };
}

/** What upstream servers say about their tools, and nobody has accepted yet. Shown to the operator of a local stack. */
const unapprovedChanges = (tools: readonly Tool[]): UnapprovedChanges[] => [
  ...new Set(tools.flatMap((tool) => tool.unapprovedChanges ?? [])),
];

/** The values that are texts: a foreign server may send anything, and a page would render an object as an element. */
const texts = (values: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === "string"));
