/** Finds the Resonate server of an operator's command: a deployment's, the environment's, or this machine's. */
import { ResonateClient, ResonateUnavailable, Sealing, SearchRefused } from "../../core/resonate/index.ts";
import { option, optionOr, readArguments, WrongArguments } from "../arguments.ts";
import { DATA, stackRecordIn } from "../launcher/data-directory.ts";
import { commandLine, readProject } from "../project.ts";

/** The options that select the server. */
export const SERVER_OPTIONS = {
  url: option("URL", "a deployment that keeps its jobs itself; needs an operator's token in OPERATOR_TOKEN"),
  "env-file": option("FILE", "read RESONATE_URL, RESONATE_TOKEN and RESONATE_NAMESPACE from this file"),
  data: optionOr(
    DATA,
    "DIR",
    `without RESONATE_URL: the state directory of the stack on this machine (default ${DATA})`,
  ),
};

export interface Server {
  client: ResonateClient;
  url: string;
  /** The variable or directory with the token, for error messages; undefined without a token. */
  tokenSource: string | undefined;
  namespace: string;
  group: string;
}

interface ServerValues {
  url?: string;
  "env-file"?: string;
  data: string;
}

/** @throws {WrongArguments} if no option, variable or local stack names a server */
function findServer(values: ServerValues): Server {
  const { "env-file": envFile } = values;
  if (envFile !== undefined) readArguments(() => process.loadEnvFile(envFile));
  const { RESONATE_NAMESPACE: namespace = "", RESONATE_GROUP, ENCRYPTION_KEYS: encryptionKeys } = process.env;
  const { url, token, tokenSource } = endpointFrom(values);
  const client = new ResonateClient({ url, token, codec: new Sealing(encryptionKeys) });
  return { client, url, tokenSource: token && tokenSource, namespace, group: RESONATE_GROUP || "workers" };
}

function endpointFrom({ url: deployment, data }: ServerValues) {
  const { RESONATE_URL: url, RESONATE_TOKEN, OPERATOR_TOKEN } = process.env;
  if (deployment !== undefined) {
    const resonate = `${deployment.replace(/\/+$/, "")}/resonate`;
    return { url: resonate, token: OPERATOR_TOKEN, tokenSource: "OPERATOR_TOKEN" };
  }
  if (url) return { url, token: RESONATE_TOKEN || undefined, tokenSource: "RESONATE_TOKEN" };
  const local = stackRecordIn(data);
  if (!local)
    throw new WrongArguments(`RESONATE_URL is not set, and ${data} has no record of a stack on this machine.`);
  return { url: local.resonateUrl, token: local.resonateToken, tokenSource: data };
}

/** Runs `work` with the server that the options name. @throws {Error} that explains the server's refusal and names a remedy */
export async function withServer<T>(values: ServerValues, work: (server: Server) => Promise<T>): Promise<T> {
  const server = findServer(values);
  try {
    return await work(server);
  } catch (error) {
    throw new Error(explain(error as Error, server), { cause: error });
  }
}

function explain(error: Error, { url, tokenSource, namespace }: Server): string {
  if (error instanceof SearchRefused) {
    const remedy = `${commandLine(readProject(), "keys", "--operator")} creates one that may, or --url accepts a deployment's operator's`;
    return `The Resonate server at ${url} does not let the token in ${tokenSource} search: ${remedy}.`;
  }
  if (!(error instanceof ResonateUnavailable)) return error.message;
  if (error.status === 401) {
    return tokenSource === undefined
      ? `The Resonate server at ${url} asks for a token: set RESONATE_TOKEN, or OPERATOR_TOKEN with --url.`
      : `The Resonate server at ${url} does not know the token in ${tokenSource}, or it has expired.`;
  }
  if (error.status === 403) {
    return `The Resonate server at ${url} does not let the token in ${tokenSource} touch jobs of the namespace "${namespace}" (RESONATE_NAMESPACE).`;
  }
  return `The Resonate server at ${url} cannot be used: ${error.message}.`;
}
