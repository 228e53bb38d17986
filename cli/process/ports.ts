import getPort, { portNumbers } from "get-port";

export const PARTS = ["edge", "resonate", "worker"] as const;
/** What listens on a port of its own. */
export type PortName = (typeof PARTS)[number];
export type Ports = Record<PortName, number>;

const DEFAULTS: Ports = { edge: 8787, resonate: 8001, worker: 8081 };
const NAMES: Record<PortName, string> = { edge: "the edge", resonate: "Resonate", worker: "the worker" };
/** How many ports behind a taken one are tried. */
const REACH = 200;

export interface PortOptions {
  /** Ports that were asked for: these, or an error. */
  asked: Partial<Ports>;
  /** The ports of earlier runs on the same state. */
  remembered: Partial<Ports>;
  /** Parts that need none. */
  without: readonly PortName[];
  /** The option that asks for each, without its dashes. */
  optionOf: Readonly<Record<PortName, string>>;
  host: string;
}

/**
 * Chooses the ports: what was asked for, or else what is remembered, or else the default; of the last two, the next free
 * one when it is taken. `said` are lines about those.
 *
 * @throws {Error} naming every port that was asked for and is taken, or asked for twice
 */
export async function choosePorts(options: PortOptions): Promise<{ ports: Ports; said: string[] }> {
  const { asked, remembered, without, optionOf, host } = options;
  const parts = PARTS.filter((part) => !without.includes(part));
  const ports: Ports = { ...DEFAULTS, ...remembered, ...asked };
  const wanted = parts.filter((part) => asked[part] !== undefined);
  const problems: string[] = [];
  for (const [i, part] of wanted.entries()) {
    const other = wanted.slice(0, i).find((earlier) => asked[earlier] === asked[part]);
    if (other) problems.push(`--${optionOf[other]} and --${optionOf[part]} are both ${asked[part]}.`);
    // It answers with another port when this one is taken.
    else if ((await getPort({ port: ports[part], host })) !== ports[part]) {
      const choose = `Choose another one for ${NAMES[part]} with --${optionOf[part]}.`;
      problems.push(`Port ${ports[part]} is already in use. ${choose}`);
    }
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));

  const said: string[] = [];
  for (const part of parts.filter((part) => asked[part] === undefined)) {
    const exclude = parts.filter((other) => other !== part).map((other) => ports[other]);
    const from = ports[part];
    ports[part] = await getPort({ port: portNumbers(from, Math.min(from + REACH, 65_535)), host, exclude });
    if (ports[part] !== from)
      said.push(`Port ${from} is taken by something else: ${NAMES[part]} is on ${ports[part]}.`);
  }
  return { ports, said };
}
