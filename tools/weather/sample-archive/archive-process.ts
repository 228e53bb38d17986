import { parseArgs } from "node:util";
import { startSampleArchive } from "./server.ts";

const { values } = parseArgs({ options: { port: { type: "string", default: "8002" } } });

try {
  const { url } = await startSampleArchive({ port: Number(values.port) });
  console.log(`Sample archive (daily weather in Seattle, 2012 to 2015): ${url}`);
} catch (error) {
  console.error(`The sample archive cannot start: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
