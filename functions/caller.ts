import type { ServerContext } from "@modelcontextprotocol/server";

/** Who makes a request, as authentication established it; empty where the deployment authenticates nobody. */
export function callerOf({ http }: Pick<ServerContext, "http">): string {
  return http?.authInfo?.clientId ?? "";
}
