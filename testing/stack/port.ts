import { randomInt } from "node:crypto";
import getPort, { portNumbers } from "get-port";

/**
 * A port that nothing listens on, for a process that starts later or for an address where nobody answers. It is below
 * 32768, where the system takes ports for other tests from.
 */
export function freePort(): Promise<number> {
  const from = randomInt(10_000, 32_000);
  return getPort({ port: portNumbers(from, from + 500) });
}
