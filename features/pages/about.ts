/** The public description of a deployment, for its pages. */
import type { Tool, UnapprovedChanges } from "../../core/tools/index.ts";
import type { Pages } from "./sessions.ts";

/** How many characters the description of tools has, since anybody may ask for it, as often as they like. */
const MAX_TOOLS_CHARACTERS = 200_000;

const texts = new WeakMap<Pages, string>();

/** The description as JSON, which is made once. */
export function aboutOf(pages: Pages): string {
  const text = texts.get(pages) ?? JSON.stringify(describe(pages));
  texts.set(pages, text);
  return text;
}

function describe({ site, config, seal, issuer }: Pages) {
  const { tools, identity } = site;
  const { PUBLIC_URL, OPERATE, auth } = config;
  const { AUTH_MODE } = auth;
  const unapproved = AUTH_MODE === "none" && OPERATE === "local" ? unapprovedChanges(tools) : [];
  return {
    ...identity.info,
    description: identity.description,
    ...(PUBLIC_URL !== undefined && { url: new URL("/mcp", PUBLIC_URL).href }),
    auth: AUTH_MODE,
    ...(AUTH_MODE === "oauth" && { issuer: auth.OAUTH_ISSUER, client_id: auth.OAUTH_CLIENT_ID }),
    ...(unapproved.length > 0 && { unapproved }),
    sign_in: seal !== undefined && (AUTH_MODE === "bearer" || issuer !== undefined),
    tools: withinLimit(tools),
  };
}

/** The tools as they are listed. Those that do not fit have a name alone, and their forms no fields. */
function withinLimit(tools: readonly Tool[]) {
  let left = MAX_TOOLS_CHARACTERS;
  return tools.map(({ job, listing: { name, title, description, inputSchema, annotations } }) => {
    const kind = job && { kind: job.kind };
    const tool = { name, ...textsIn({ title, description }), inputSchema, annotations, ...kind };
    const { length } = JSON.stringify(tool);
    if (length > left) return { name, inputSchema: { type: "object" }, ...kind };
    left -= length;
    return tool;
  });
}

/** What upstream servers say about their tools, and nobody has accepted yet. Shown to the operator of a local stack. */
const unapprovedChanges = (tools: readonly Tool[]): UnapprovedChanges[] => [
  ...new Set(tools.flatMap((tool) => tool.unapprovedChanges ?? [])),
];

/** The values that are texts: a foreign server may send anything, and a page would render an object as an element. */
const textsIn = (values: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === "string"));
