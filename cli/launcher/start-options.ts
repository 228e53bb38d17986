import { parseArgs } from "node:util";
import type { LocalService } from "../../core/author/index.ts";
import { HOSTS } from "../../core/tools/index.ts";
import { flag, option } from "../arguments.ts";
import { OPTION_OF, PORT_NAMES, type Ports } from "../process/ports.ts";
import { DATA } from "./data-directory.ts";

export type Options = ReturnType<typeof parseOptions>;

/** The options of `start`, `dev` and `wrap`, with one for each of the project's services. */
export const optionsOf = (services: readonly LocalService[]) => ({
  ...Object.fromEntries(services.map(({ option }) => [option.name, flag(option.description)])),
  port: option("PORT", "the edge, which serves /mcp (default 8787)"),
  "resonate-port": option("PORT", "the embedded Resonate server (default 8001)"),
  "worker-port": option("PORT", "the worker's /health (default HEALTH_PORT, or 8081)"),
  data: option("DIR", `where the embedded Resonate server keeps its state (default ${DATA})`),
  memory: flag("keep the state in memory only"),
  open: flag("open the front page in a browser: it has a form for each tool"),
  plain: flag("print a line for each event of a job, instead of one line for each job that changes in place"),
  config: option("CLIENT", `print how to connect a client: ${HOSTS.join(", ")}`),
});

/** Reads the launcher's arguments and `HEALTH_PORT`. @throws {Error} that names the wrong argument */
export function parseOptions(args: string[], services: readonly LocalService[], { HEALTH_PORT }: NodeJS.ProcessEnv) {
  const { values } = parseArgs({ args, options: optionsOf(services) });
  if (values.memory && values.data !== undefined) throw new Error("--memory and --data exclude each other");
  const { config } = values;
  if (config !== undefined && !HOSTS.includes(config)) {
    throw new Error(`--config must be one of ${HOSTS.join(", ")}, not "${config}"`);
  }
  const ports: Partial<Ports> = {};
  for (const part of PORT_NAMES) {
    const option = OPTION_OF[part];
    const text = values[option as "port"];
    if (text !== undefined) ports[part] = port(`--${option}`, text);
  }
  // Port 0 means any free port, as if the option were left out.
  if (ports.worker === undefined && HEALTH_PORT && HEALTH_PORT !== "0") ports.worker = port("HEALTH_PORT", HEALTH_PORT);
  const isOn = ({ option }: LocalService) => (values as Record<string, unknown>)[option.name] === true;
  return {
    ports,
    /** The project's services that are turned on, and its others. */
    services: services.filter(isOn),
    others: services.filter((service) => !isOn(service)),
    /** The embedded server's data directory; undefined to keep the state in memory. */
    data: values.memory ? undefined : (values.data ?? DATA),
    config,
    open: values.open,
    plain: values.plain,
  };
}

function port(option: string, text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= 65_535) return number;
  throw new Error(`${option} must be a port number from 1 to 65535, not "${text}"`);
}

/**
 * The options that npm consumed because they did not follow `--` (`npm start --port 1`), in the form to type; undefined
 * if there are none. npm leaves the options in the environment, and their values, if separate, among the arguments.
 */
export function swallowedByNpm(
  args: readonly string[],
  services: readonly LocalService[],
  env: NodeJS.ProcessEnv,
): string | undefined {
  if (env.npm_lifecycle_event === undefined) return undefined;
  const npmValue = (name: string) => env[`npm_config_${name.replaceAll("-", "_")}`];
  const options: [string, { type: string; placeholder?: string }][] = Object.entries(optionsOf(services));
  const flags = options.filter(([name, { type }]) => type === "boolean" && npmValue(name) === "true");
  const valueOptions = options.filter(([name, { type }]) => type === "string" && npmValue(name));
  if (flags.length + valueOptions.length === 0) return undefined;
  const onlyArgument = valueOptions.length === 1 && args.length === 1 ? args[0] : undefined;
  const values = valueOptions.map(([name, { placeholder }]) => {
    const value = npmValue(name);
    return `--${name} ${value === "true" ? (onlyArgument ?? placeholder) : value}`;
  });
  return [...flags.map(([name]) => `--${name}`), ...values].join(" ");
}
