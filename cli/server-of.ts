/** The Resonate server that an operator's command is about: that of the environment, or of the stack on this machine. */
import { ResonateClient } from "../core/store/client.ts";
import { ResonateUnavailable, SearchRefused } from "../core/store/failures.ts";
import { recordOf } from "./launcher/data-directory.ts";
import { DATA } from "./launcher/start-options.ts";
import { readProject, typed } from "./project.ts";

/** The options by which a command is told of it, for `parseArgs`. */
export const SERVER_OPTIONS = {
  url: { type: "string" },
  "env-file": { type: "string" },
  data: { type: "string", default: DATA },
} as const;

/** What a command's usage says of them. */
export const SERVER_USAGE = `  --url URL        a deployment that keeps its jobs itself; its operator's token in OPERATOR_TOKEN
  --env-file FILE  read RESONATE_URL, RESONATE_TOKEN and RESONATE_NAMESPACE from it
  --data DIR       without RESONATE_URL: where the stack of this machine keeps its state (default ${DATA})`;

export interface Server {
  client: ResonateClient;
  url: string;
  /** Where its token is from, for whoever reads of it; undefined without one. */
  tokenOf: string | undefined;
  namespace: string;
  /** The deployment's worker group. */
  group: string;
}

/** @throws {Error} when nothing says where the server is */
export function serverOf(values: { url?: string; "env-file"?: string; data: string }): Server {
  if (values["env-file"] !== undefined) process.loadEnvFile(values["env-file"]);
  const { RESONATE_NAMESPACE: namespace = "", RESONATE_GROUP, ENCRYPTION_KEYS: encryptionKeys } = process.env;
  const { url, token, tokenOf } = addressOf(values);
  const client = new ResonateClient({ url, token, encryptionKeys: encryptionKeys || undefined });
  return { client, url, tokenOf: token && tokenOf, namespace, group: RESONATE_GROUP || "workers" };
}

function addressOf({ url: deployment, data }: { url?: string; data: string }) {
  const { RESONATE_URL: url, RESONATE_TOKEN, OPERATOR_TOKEN } = process.env;
  if (deployment !== undefined) {
    return { url: `${deployment.replace(/\/+$/, "")}/resonate`, token: OPERATOR_TOKEN, tokenOf: "OPERATOR_TOKEN" };
  }
  if (url) return { url, token: RESONATE_TOKEN || undefined, tokenOf: "RESONATE_TOKEN" };
  const local = recordOf(data);
  if (!local) throw new Error(`RESONATE_URL is not set, and ${data} says of no stack on this machine.`);
  return { url: local.resonateUrl, token: local.resonateToken, tokenOf: data };
}

/**
 * Does what a command does with its server.
 *
 * @throws {Error} saying, when the server does not do it, why that is and what helps
 */
export async function withServer<T>(server: Server, work: (server: Server) => Promise<T>): Promise<T> {
  try {
    return await work(server);
  } catch (error) {
    throw new Error(inWords(error as Error, server), { cause: error });
  }
}

/** Why a server does not do what a command asks, and what helps. */
export function inWords(error: Error, { url, tokenOf, namespace }: Server): string {
  if (error instanceof SearchRefused) {
    const helps = `${typed(readProject(), "keys", "--operator")} makes one that may, or --url takes a deployment's operator's`;
    return `The Resonate server at ${url} does not let the token in ${tokenOf} search: ${helps}.`;
  }
  if (!(error instanceof ResonateUnavailable)) return error.message;
  if (error.status === 401) {
    return tokenOf === undefined
      ? `The Resonate server at ${url} asks for a token: set RESONATE_TOKEN, or OPERATOR_TOKEN with --url.`
      : `The Resonate server at ${url} does not know the token in ${tokenOf}, or it has expired.`;
  }
  if (error.status === 403) {
    return `The Resonate server at ${url} does not let the token in ${tokenOf} touch jobs of the namespace "${namespace}" (RESONATE_NAMESPACE).`;
  }
  return `The Resonate server at ${url} cannot be used: ${error.message}.`;
}
