import { randomInt } from "node:crypto";
import { threadId } from "node:worker_threads";
import getPort, { portNumbers } from "get-port";

/** The ports that this process and thread uses: those of processes that are started one after another do not overlap. */
const PORTS_PER_PROCESS = 500;
const FIRST_PORT = 10_000 + ((process.pid + threadId) % 44) * PORTS_PER_PROCESS;

/**
 * A port that nothing listens on, for a process that starts later or for an address that must not answer. It is below 32768,
 * because the system assigns ports from there on to other tests.
 */
export function freePort(): Promise<number> {
  return getPort({
    port: portNumbers(randomInt(FIRST_PORT, FIRST_PORT + PORTS_PER_PROCESS / 2), FIRST_PORT + PORTS_PER_PROCESS - 1),
  });
}
