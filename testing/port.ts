import { randomInt } from "node:crypto";
import getPort, { portNumbers } from "get-port";

/**
 * A port that nothing listens on, for a process that is started later or for an address where nobody answers. Not one of
 * those that the system hands out, from 32768 on: by then another test might have been given it.
 */
export function freePort(): Promise<number> {
  const from = randomInt(10_000, 32_000);
  return getPort({ port: portNumbers(from, from + 500) });
}
