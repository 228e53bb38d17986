/** The checks of `npm run containers`. */
import { setTimeout as delay } from "node:timers/promises";
import { execa } from "execa";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { currentClient } from "../../test/support/clients.ts";
import { until } from "../../testing/stack/program.ts";
import { docker, IMAGE, type Machine, makeMachine } from "./machine.ts";

type CurrentClient = Awaited<ReturnType<typeof currentClient.connect>>;

let failures = 0;

/** Runs a check and prints its duration and result; a check that throws has failed. */
async function check(what: string, run: () => Promise<string>): Promise<void> {
  const start = performance.now();
  try {
    const found = await run();
    console.log(`ok      ${what}: ${found} (${seconds(performance.now() - start)})`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED  ${what}: ${error instanceof Error ? error.message : error}`);
  }
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

function hold(condition: boolean, words: string): void {
  if (!condition) throw new Error(words);
}

/** Runs the checks, each with a line about its result. Returns the number of failures. */
export async function checkContainers(): Promise<number> {
  await using machine = await makeMachine();
  await checkAll(machine);
  return failures;
}

/** A deployment whose containers are up, with an edge beside them, its client, and the client's jobs. */
interface Deployment {
  machine: Machine;
  edge: EdgeProcess;
  client: CurrentClient;
  jobs: ReturnType<typeof jobsOf>;
}

const up = ({ compose }: Machine) => compose("up", "--detach", "--no-build", "--wait");

async function checkAll(machine: Machine): Promise<void> {
  const { compose } = machine;
  await check("the worker's image", () => imageSize(machine));
  const before = failures;
  await check("compose up --wait", async () => {
    await up(machine);
    return "every container is healthy";
  });
  if (failures > before) return console.log(await compose("logs", "--tail", "30"));

  await using edge = await startEdge({
    port: 0,
    bindings: { ...machine.edgeEnv, RESONATE_URL: machine.resonate, AUTH_MODE: "none", RATE_LIMIT: "0" },
  });
  await using client = await currentClient.connect(`${edge.url}/mcp`);
  const jobs = jobsOf(machine, client);
  const deployment = { machine, edge, client, jobs };
  await check("the doctor", () => doctor(deployment));
  await check("jobs", async () => jobs.complete(await jobs.start(12)));
  await check("docker stop, with a job under way that does not end", () => stopDuringJob(deployment));
  for (const service of ["worker", "resonate", "postgres"])
    await check(`docker kill of ${service}`, () => killDuringJobs(deployment, service));
  await check("Postgres away for 20 s", () => postgresOutage(deployment));
  await check("a stop while the worker starts", () => stopDuringStart(machine));
  await check("two workers more, with WORKERS", () => workerCounts(machine));
  await check("a worker whose token is refused", () => refusedToken(machine));
}

async function imageSize({ compose }: Machine): Promise<string> {
  await compose("build", "worker");
  const size = async (image: string) => Number(await docker("image", "inspect", "--format", "{{.Size}}", image)) / 1e6;
  const [whole, base] = [await size(IMAGE), await size("node:24.21.0-slim").catch(() => undefined)];
  return `${whole.toFixed(1)} MB${base === undefined ? "" : `, ${(whole - base).toFixed(1)} MB more than its base`}`;
}

async function doctor({ machine, edge }: Deployment): Promise<string> {
  const workerUrl = `http://${await machine.compose("port", "worker", "8081")}`;
  const options = ["--url", edge.url, "--env-file", machine.edgeEnvFile, "--worker-url", workerUrl];
  const env = { RESONATE_URL: machine.resonate };
  const ran = await execa(process.execPath, ["cli/main.ts", "doctor", ...options], { env, reject: false });
  hold(ran.exitCode === 0, ran.stdout);
  return ran.stdout.split("\n").at(-1) ?? "";
}

async function stopDuringJob({ machine, jobs }: Deployment): Promise<string> {
  await jobs.fault({ fault: { kind: "hang" } });
  const asked = await jobs.start(1);
  await jobs.underWay();
  const start = performance.now();
  const container = await machine.container("worker");
  await machine.compose("stop", "worker");
  const took = performance.now() - start;
  const code = await docker("inspect", "--format", "{{.State.ExitCode}}", container);
  hold(code === "0", `the worker ended with ${code}`);
  await jobs.fault(undefined);
  await up(machine);
  return `it ends with 0 after ${seconds(took)}, and the job goes on: ${await jobs.complete(asked, 1)}`;
}

async function killDuringJobs({ machine, jobs }: Deployment, service: string): Promise<string> {
  await jobs.fault({ fault: { kind: "slow", ms: 2_000 } });
  const asked = await jobs.start(8);
  await jobs.underWay();
  await machine.compose("kill", "--signal", "KILL", service);
  await delay(1_000);
  const start = performance.now();
  await up(machine);
  await jobs.fault(undefined);
  // The requests of a dead worker are repeated.
  const found = await jobs.complete(asked, service === "worker" ? 8 : 0);
  return `${found}, ${seconds(performance.now() - start)} after it was started again`;
}

async function postgresOutage({ machine, client, jobs }: Deployment): Promise<string> {
  await jobs.fault({ fault: { kind: "slow", ms: 2_000 } });
  const asked = await jobs.start(8);
  await jobs.underWay();
  await machine.compose("stop", "postgres");
  const start = performance.now();
  const said = await client.callTool("set_timer", { timer_name: "meanwhile", seconds: 1 });
  const took = performance.now() - start;
  hold(said.isError, `a call is answered with ${said.text}`);
  await delay(Math.max(0, 20_000 - took));
  await up(machine);
  await jobs.fault(undefined);
  return `a call fails after ${seconds(took)} (${said.text}), and then ${await jobs.complete(asked, 8)}`;
}

async function stopDuringStart(machine: Machine): Promise<string> {
  await machine.compose("stop", "worker");
  await machine.compose("start", "worker");
  const start = performance.now();
  await machine.compose("stop", "worker");
  const took = performance.now() - start;
  // If it ignored the signal, it would be killed after its grace period of 20 seconds.
  hold(took < 15_000, `it takes ${seconds(took)}`);
  await up(machine);
  return `it ends after ${seconds(took)}`;
}

async function workerCounts(machine: Machine): Promise<string> {
  const of = async (workers: string) => {
    process.env.WORKERS = workers; // Compose reads it from the environment or from infra/.env.
    await up(machine);
    await up(machine);
    return (await machine.compose("ps", "--quiet", "worker")).split("\n").length;
  };
  const [three, one] = [await of("3"), await of("1")];
  hold(three === 3 && one === 1, `there are ${three}, and then ${one}`);
  return "three, also when it is brought up again, and one again after that";
}

async function refusedToken(machine: Machine): Promise<string> {
  const { exitCode, output } = await machine.tried("run", "--rm", "-T", "--env", "RESONATE_TOKEN=wrong", "worker");
  hold(exitCode !== 0, "it ended with 0");
  hold(/refuses RESONATE_TOKEN/.test(output), `it says: ${output.slice(-300)}`);
  return `ends with ${exitCode}, and says so`;
}

/** A caller's distinct months, and all requests to the archive. */
function jobsOf({ archive }: Machine, client: CurrentClient) {
  let given = 0;
  const requests = async (): Promise<{ total: number; byQuery: Record<string, number> }> =>
    (await fetch(`${archive}/requests`)).json() as never;
  let before = 0;
  return {
    async start(count: number): Promise<string[]> {
      before = (await requests()).total;
      const names: string[] = [];
      for (let n = 0; n < count; n++, given++) {
        const month = { year: 2012 + Math.floor(given / 12), month: (given % 12) + 1 };
        const { content } = await client.callTool("start_gathering", { latitude: 47.6, longitude: -122.3, ...month });
        names.push(content.job_name);
      }
      const timer_name = `after-${given}`;
      const { content } = await client.callTool("set_timer", { timer_name, seconds: 5 });
      return [...names, content.promise_id];
    },
    /** Waits for the first archive request for one of them. */
    async underWay(): Promise<void> {
      await until("the archive to be asked", async () => ((await requests()).total > before ? true : undefined));
    },
    /** Waits until all are complete, with at most `more` requests beyond one per month. */
    async complete(names: readonly string[], more = 0): Promise<string> {
      const results = await until(
        "all jobs to be complete",
        async () => {
          const { content } = await client
            .callTool("probe_status", { job_names: names, result: "none" })
            .catch(() => ({ content: { statuses: [] } }));
          const statuses: { status: string }[] = content.statuses ?? [];
          const ended = statuses.filter(({ status }) => status !== "running");
          return ended.length === names.length ? statuses : undefined;
        },
        120_000,
      );
      const lost = results.filter(({ status }) => status !== "complete");
      hold(lost.length === 0, `${lost.length} of ${names.length} jobs were lost: ${JSON.stringify(lost)}`);
      const asked = (await requests()).total - before;
      const months = names.length - 1;
      hold(asked <= months + more, `the archive was asked ${asked} times for ${months} months`);
      return `${names.length} jobs complete, ${asked} requests to the archive for ${months}`;
    },
    /** Sets the archive's fault for all later requests; undefined for none. */
    async fault(rule: object | undefined): Promise<void> {
      await fetch(`${archive}/faults`, { method: "DELETE" });
      if (!rule) return;
      const headers = { "content-type": "application/json" };
      await fetch(`${archive}/faults`, { method: "POST", headers, body: JSON.stringify(rule) });
    },
  };
}
