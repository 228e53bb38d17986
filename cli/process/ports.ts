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
const DEFAULTS: Ports = { edge: 8787, resonate: 8001, worker: 8081 };
const NAMES: Record<PortName, string> = { edge: "the edge", resonate: "Resonate", worker: "the worker" };
/** How many ports are tried after a taken one. */
const REACH = 200;

interface PortOptions {
  /** Requested ports, which are used or refused. */
  asked: Partial<Ports>;
  /** The ports of earlier runs with the same state. */
  remembered: Partial<Ports>;
  without: readonly PortName[];
}

/**
 * Chooses the ports: the requested one, else the remembered one, else the default. If a remembered or default port is taken,
 * it uses the next free one and adds a line to `said`.
 *
 * @throws {Error} that names every requested port that is taken or requested twice
 */
export async function choosePorts({
  asked,
  remembered,
  without,
}: PortOptions): Promise<{ ports: Ports; said: string[] }> {
  const parts = PORT_NAMES.filter((part) => !without.includes(part));
  const ports: Ports = { ...DEFAULTS, ...remembered, ...asked };
  const wanted = parts.filter((part) => asked[part] !== undefined);
  const problems: string[] = [];
  for (const [i, part] of wanted.entries()) {
    const other = wanted.slice(0, i).find((earlier) => asked[earlier] === asked[part]);
    if (other) problems.push(`--${OPTION_OF[other]} and --${OPTION_OF[part]} are both ${asked[part]}.`);
    // get-port returns another port if this one is taken.
    else if ((await getPort({ port: ports[part], host: HOST })) !== ports[part]) {
      const choose = `Choose another one for ${NAMES[part]} with --${OPTION_OF[part]}.`;
      problems.push(`Port ${ports[part]} is already in use. ${choose}`);
    }
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));

  const said: string[] = [];
  for (const part of parts.filter((part) => asked[part] === undefined)) {
    const exclude = parts.filter((other) => other !== part).map((other) => ports[other]);
    const from = ports[part];
    const port = portNumbers(from, Math.min(from + REACH, 65_535));
    ports[part] = await getPort({ port, host: HOST, exclude });
    if (ports[part] !== from)
      said.push(`Port ${from} is taken by something else: ${NAMES[part]} is on ${ports[part]}.`);
  }
  return { ports, said };
}
