import { parseArgs } from "node:util";

export interface Options {
  /** Ports on 127.0.0.1. */
  port: number;
  resonatePort: number;
  workerPort: number;
  sampleWeather: boolean;
  /** Where the embedded Resonate keeps its state; undefined when it keeps none. */
  data: string | undefined;
  help: boolean;
}

export const USAGE = `Usage: npm start -- [options]

Runs Resonate, the worker and the edge on this machine until Ctrl-C.

  --sample-weather      serve bundled weather (Seattle, 2012 to 2015) instead of asking Open-Meteo
  --port PORT           the edge, which serves /mcp (default 8787)
  --resonate-port PORT  the embedded Resonate server (default 8001)
  --worker-port PORT    the worker's /health (default 8081)
  --data DIR            where the embedded Resonate server keeps its state (default .resonate)
  --memory              keep the state in memory only
  --help                show this text

Environment: RESONATE_URL (use that Resonate server instead of the embedded one), RESONATE_TOKEN, RESONATE_GROUP,
RESONATE_NAMESPACE, WEATHER_API_URL, TASK_KEY, LOG_LEVEL.
`;

/** @throws {Error} saying what is wrong with the arguments */
export function parseOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      port: { type: "string", default: "8787" },
      "resonate-port": { type: "string", default: "8001" },
      "worker-port": { type: "string", default: "8081" },
      "sample-weather": { type: "boolean", default: false },
      data: { type: "string" },
      memory: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.memory && values.data !== undefined) throw new Error("--memory and --data exclude each other");
  return {
    port: port("--port", values.port),
    resonatePort: port("--resonate-port", values["resonate-port"]),
    workerPort: port("--worker-port", values["worker-port"]),
    sampleWeather: values["sample-weather"],
    data: values.memory ? undefined : (values.data ?? ".resonate"),
    help: values.help,
  };
}

function port(option: string, text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= 65_535) return number;
  throw new Error(`${option} must be a port number from 1 to 65535, not "${text}"`);
}
