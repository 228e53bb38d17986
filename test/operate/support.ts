import { randomBytes } from "node:crypto";
import type { Stack, StackOptions } from "../support/stack.ts";
import { startTaskStack } from "../tasks/support.ts";

/**
 * Starts a stack whose workers report to the edge, and whose operator is this machine's user unless the bindings say
 * otherwise. Adds to `bindings` and `env`, which every later start of the edge and of a worker reads again.
 */
export async function startOperated({
  bindings = {},
  env = {},
  workers = 1,
  ...options
}: StackOptions = {}): Promise<Stack> {
  const VIEW_KEY = randomBytes(32).toString("hex");
  Object.assign(env, { VIEW_KEY, LEASE_SECONDS: "3", ...env });
  Object.assign(bindings, { VIEW_KEY, OPERATE: "local", ...bindings });
  const stack = await startTaskStack({ ...options, workers: 0, env, bindings });
  env.EDGE_URL = stack.origin;
  for (let n = 0; n < workers; n++) await stack.addWorker();
  return stack;
}

/** The requests of an operator. */
export function operatorAt(origin: string, token?: string) {
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  // oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
  const json = async (response: Response): Promise<any> => {
    const body = await response.json();
    if (!response.ok) throw new Error(`${response.status} ${body.error}`);
    return body;
  };
  return {
    token,
    get: async (path: string, query: Record<string, string> = {}) =>
      json(await fetch(`${origin}/operate/${path}?${new URLSearchParams(query)}`, { headers })),
    post: async (path: string, body: object) =>
      json(await fetch(`${origin}/operate/${path}`, { method: "POST", headers, body: JSON.stringify(body) })),
    act: async (action: object) =>
      json(await fetch(`${origin}/operate/act`, { method: "POST", headers, body: JSON.stringify(action) })),
  };
}
