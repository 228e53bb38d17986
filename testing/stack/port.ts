import { randomInt } from "node:crypto";
import getPort, { portNumbers } from "get-port";

/**
 * A port that nothing listens on, for a process that starts later or for an address that must not answer. It is below 32768,
 * because the system assigns ports from there on to other tests.
 */
export function freePort(): Promise<number> {
  const from = randomInt(10_000, 32_000);
  return getPort({ port: portNumbers(from, from + 500) });
}
