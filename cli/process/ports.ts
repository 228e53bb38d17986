import getPort, { portNumbers } from "get-port";

export const PORT_NAMES = ["edge", "resonate", "worker"] as const;
export type PortName = (typeof PORT_NAMES)[number];
export type Ports = Record<PortName, number>;

/** The address that everything listens on. */
export const HOST = "127.0.0.1";
/** The option that sets each port, without its dashes. */
export const OPTION_OF: Readonly<Record<PortName, string>> = {
  edge: "port",
  resonate: "resonate-port",
  worker: "worker-port",
};
const DEFAULT_PORTS: Ports = { edge: 8787, resonate: 8001, worker: 8081 };
const PART_NAMES: Record<PortName, string> = { edge: "the edge", resonate: "Resonate", worker: "the worker" };
/** How many ports are tried after a taken one. */
const MAX_PORTS_TRIED = 200;

interface PortOptions {
  /** The ports of the options, which are used or refused. */
  optionPorts: Partial<Ports>;
  /** The ports of the last run with the same state. */
  lastPorts: Partial<Ports>;
  without: readonly PortName[];
}

/**
 * Chooses the ports: that of the option, else that of the last run, else the default. If a port of the last run or a default is
 * taken, it uses the next free one and adds a line to `messages`.
 *
 * @throws {Error} that names every port of an option that is taken or named twice
 */
export async function choosePorts({
  optionPorts,
  lastPorts,
  without,
}: PortOptions): Promise<{ ports: Ports; messages: string[] }> {
  const parts = PORT_NAMES.filter((part) => !without.includes(part));
  const ports: Ports = { ...DEFAULT_PORTS, ...lastPorts, ...optionPorts };
  const optionParts = parts.filter((part) => optionPorts[part] !== undefined);
  const problems: string[] = [];
  for (const [i, part] of optionParts.entries()) {
    const other = optionParts.slice(0, i).find((earlier) => optionPorts[earlier] === optionPorts[part]);
    if (other) problems.push(`--${OPTION_OF[other]} and --${OPTION_OF[part]} are both ${optionPorts[part]}.`);
    // get-port returns another port if this one is taken.
    else if ((await getPort({ port: ports[part], host: HOST })) !== ports[part]) {
      const choose = `Choose another one for ${PART_NAMES[part]} with --${OPTION_OF[part]}.`;
      problems.push(`Port ${ports[part]} is already in use. ${choose}`);
    }
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));

  const messages: string[] = [];
  for (const part of parts.filter((part) => optionPorts[part] === undefined)) {
    const exclude = parts.filter((other) => other !== part).map((other) => ports[other]);
    const from = ports[part];
    const port = portNumbers(from, Math.min(from + MAX_PORTS_TRIED, 65_535));
    ports[part] = await getPort({ port, host: HOST, exclude });
    if (ports[part] !== from)
      messages.push(`Port ${from} is taken by something else: ${PART_NAMES[part]} is on ${ports[part]}.`);
  }
  return { ports, messages };
}
