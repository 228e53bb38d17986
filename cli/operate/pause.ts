/** `pause KIND` and `resume KIND`: jobs of a kind are run no further, until they are again. */
import { parseArgs } from "node:util";
import { PausedKinds } from "../../core/jobs/paused-kinds.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { SERVER_OPTIONS, SERVER_USAGE, serverOf, withServer } from "../server-of.ts";

const usage = (command: string) => `Usage: ${typed(readProject(), command, "KIND [options]")}

\`pause\` has workers run jobs of a kind no further: within five seconds they begin none, and go on with none that sleeps or
waits; what they execute at the moment goes on to its next sleep or its end. Jobs can be started, and wait. It lasts until
\`resume\`, whatever is restarted meanwhile. Deadlines are not moved.

${SERVER_USAGE}
  --help           show this text
`;

export async function run(command: "pause" | "resume", args: string[]): Promise<void> {
  const read = () => {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { ...SERVER_OPTIONS, help: { type: "boolean" } },
    });
    if (values.help) return undefined;
    const [kind, ...rest] = positionals;
    if (kind === undefined || rest.length > 0 || !/^\w+$/.test(kind)) throw new Error("Name one kind of job.");
    return { kind, server: serverOf(values) };
  };
  const options = readArguments(read, usage(command));
  if (!options) return;
  const { kind, server } = options;
  await withServer(server, async ({ client, namespace }) => {
    const kinds = new PausedKinds(client, namespace);
    if (command === "pause") {
      const since = await kinds.pause(kind);
      console.log(`Jobs of the kind ${kind} are paused since ${new Date(since).toISOString()}.`);
    } else {
      const wasPaused = await kinds.resume(kind);
      console.log(wasPaused ? `Jobs of the kind ${kind} go on.` : `Jobs of the kind ${kind} were not paused.`);
    }
  });
}
