/** The Resonate server that an operator's command is about: that of the environment, or of the stack on this machine. */
import { ResonateClient } from "../../core/resonate/client.ts";
import { recordOf } from "../launcher/data-directory.ts";
import { DATA } from "../launcher/options.ts";

/** The options by which a command is told of it, for `parseArgs`. */
export const SERVER_OPTIONS = {
  "env-file": { type: "string" },
  data: { type: "string", default: DATA },
} as const;

/** What a command's usage says of them. */
export const SERVER_USAGE = `  --env-file FILE  read RESONATE_URL, RESONATE_TOKEN and RESONATE_NAMESPACE from it
  --data DIR       without RESONATE_URL: where the stack of this machine keeps its state (default ${DATA})`;

export interface Server {
  client: ResonateClient;
  namespace: string;
  /** The deployment's worker group. */
  group: string;
}

/** @throws {Error} when nothing says where the server is */
export function serverOf(values: { "env-file"?: string; data: string }): Server {
  if (values["env-file"] !== undefined) process.loadEnvFile(values["env-file"]);
  const { RESONATE_URL, RESONATE_TOKEN, RESONATE_NAMESPACE: namespace = "", RESONATE_GROUP } = process.env;
  const encryptionKeys = process.env.ENCRYPTION_KEYS || undefined;
  const local = RESONATE_URL ? undefined : recordOf(values.data);
  const url = RESONATE_URL || local?.resonateUrl;
  if (!url) throw new Error(`RESONATE_URL is not set, and ${values.data} says of no stack on this machine.`);
  const token = local ? local.resonateToken : RESONATE_TOKEN || undefined;
  return { client: new ResonateClient({ url, token, encryptionKeys }), namespace, group: RESONATE_GROUP || "workers" };
}
