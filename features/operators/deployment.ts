import { jsonOf } from "../../core/resonate/index.ts";
import type { Definitions, OperatorConfig } from "./options.ts";
import type { OperateTables } from "./tables.ts";

/** Notes in the audit log which tokens and tools a deployment has changed, and who accepted the lists of its wrapped servers. */
export function noteDeployment(tables: OperateTables, definitions: Definitions, config: OperatorConfig): void {
  const { auth, isOperated, OPERATOR_TOKENS, OAUTH_OPERATE_SCOPE } = config;
  if (!isOperated) return;
  for (const { by, ...about } of new Set(definitions.tools.flatMap(({ acceptances = [] }) => acceptances))) {
    const last = `accepted of ${about.server}`;
    if (about.at <= (tables.get<string>(last) ?? "")) continue;
    tables.set(last, about.at);
    tables.audit.note(by, "list of tools accepted", about);
  }
  const listed = jsonOf(OPERATOR_TOKENS ?? "");
  const wordsOf = ({ name, sha256 }: { name: string; sha256: string }) => `${name} ${String(sha256).slice(0, 8)}`;
  const now: Record<string, string[]> = {
    callers: auth.AUTH_MODE === "bearer" ? auth.BEARER_TOKENS.map(wordsOf) : [],
    operators: [
      ...(Array.isArray(listed) ? listed.map(wordsOf) : []),
      ...(OAUTH_OPERATE_SCOPE ? [`scope ${OAUTH_OPERATE_SCOPE}`] : []),
    ],
    tools: definitions.tools.map(({ listing }) => String(listing.name)),
  };
  const before = tables.get<typeof now>("deployment");
  if (JSON.stringify(before) === JSON.stringify(now)) return;
  tables.set("deployment", now);
  for (const [what, names] of Object.entries(now)) {
    const old = before?.[what];
    const [added, removed] = [
      names.filter((each) => !old?.includes(each)),
      old?.filter((each) => !names.includes(each)) ?? [],
    ];
    if (old && added.length + removed.length > 0)
      tables.audit.note("deployment", `${what} changed`, { added, removed });
  }
}
