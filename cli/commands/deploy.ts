/** `deploy`: deploys the edge, Resonate and the worker of a project to Cloudflare. */
import { createInterface } from "node:readline/promises";
import { setTimeout as delay } from "node:timers/promises";
import { optionIn, usageOf } from "../arguments.ts";
import { type Configuration, readConfiguration, requireCallers } from "../bundle/configuration.ts";
import { Account, type Bindings } from "../deploy/account.ts";
import { withAdditions } from "../deploy/configuration.ts";
import { type Choice, chooseContainer, containerConfig, workerName } from "../deploy/container.ts";
import { type DeployOptions, OPTIONS, readOptions } from "../deploy/deploy-options.ts";
import { type FirstCaller, firstCaller } from "../deploy/first-caller.ts";
import { addToken, formOf, locationOf, type NewToken, secretsFor, usesTokens } from "../deploy/variables.ts";
import { type RunWrangler, runWrangler } from "../deploy/wrangler.ts";
import { run as runDoctor } from "../doctor/doctor.ts";
import { isOk } from "../process/supervise.ts";
import { commandLine, configurationOf, type Project, readProject } from "../project.ts";
import { localSetups } from "../terminal/clients.ts";
import { print } from "../terminal/print.ts";

export const usage = usageOf(
  "[options]",
  `Deploys the project in this folder to Cloudflare: creates what is missing, waits until the edge answers, runs the doctor, and
prints the configuration of each client. The first time, at a terminal, it creates a caller and shows the token once. Options
that are not listed go to wrangler.`,
  OPTIONS,
);

/** How long a new deployment may take to become ready. */
const READY_TIMEOUT_MS = 120_000;

interface Tokens {
  caller: FirstCaller | undefined;
  worker: NewToken | undefined;
  operator: NewToken | undefined;
}

/** What is deployed, and how the deployment differs from that. */
interface Plan {
  /** Undefined in a dry run without a login. */
  account: Account | undefined;
  /** The bindings of the edge, if it is deployed. */
  edge: Bindings | undefined;
  /** Whether the container's Worker is deployed. */
  hasWorker: boolean;
  /** Where the jobs run; undefined without runners. */
  choice: Choice | undefined;
  form: Record<string, string>;
  location: Record<string, string>;
  hasCallers: boolean;
  needsCaller: boolean;
}

/** A project, and what runs wrangler for it. */
interface Target extends Project {
  readonly runWrangler: RunWrangler;
}

export const run = (args: string[]): Promise<void> => runWith(runWrangler, args);

/** The command, with what runs wrangler. */
export async function runWith(runWrangler: RunWrangler, args: string[]): Promise<void> {
  const project = readProject();
  const config = await readConfiguration(configurationOf(project));
  const name = optionIn(args, "--name") ?? config.name ?? project.name;
  const target = { ...project, name, runWrangler };
  if (args.includes("--remove")) return remove(args, target, config);
  const bindings = config.durable_objects?.bindings ?? [];
  if (!hasOwnConfig(args)) requireCallers(bindings.map((binding) => binding.name));
  await deploy(readOptions(args), target, config);
}

async function deploy(options: DeployOptions, project: Target, config: Configuration): Promise<void> {
  const { values, isDry } = options;
  const plan = await planOf(options, project, config);
  const { account, edge, choice } = plan;
  // A token is shown at a terminal, but in a build's log only on request.
  const mayShow = values.caller !== undefined || Boolean(process.stdout.isTTY);
  await using caller = plan.needsCaller && mayShow ? await firstCaller(values.caller) : undefined;
  const workerElsewhere = values["workers-elsewhere"] ?? (caller && choice ? await askForWorkers() : undefined);
  const worker = addToken(edge, "RESONATE_TOKENS", workerElsewhere);
  const operator = addToken(edge, "OPERATOR_TOKENS", values.operator);
  const variables = {
    ...(choice && { RUNS_IN: choice.runsIn }),
    ...plan.form,
    ...plan.location,
    ...worker.variables,
    ...operator.variables,
  };
  const tokens = { caller, worker: worker.newToken, operator: operator.newToken };
  if (choice) print(choice.explanation);
  const targets = await deployParts(options, project, plan, { variables, tokens });
  if (!targets) return;
  if (isDry) {
    if (!plan.hasCallers) print("\nA deployment that has no callers yet would get one, whose token is shown once.");
    return;
  }
  const url = addressOf(targets);
  const isCallable = !plan.needsCaller || caller !== undefined;
  if (url !== undefined && isCallable && !options.noWait) await examine(url, tokens);
  if (!isCallable) {
    const command = commandLine(project, "deploy");
    print(`\nNobody may call it yet: run \`${command}\` at a terminal once, which creates a caller.`);
  } else if (url === undefined) print("\nIt has no address of its own. Give it a route, then examine it there.");
  else showClients(url, project, usesTokens(await account?.bindings(project.name)) ? "YOUR-TOKEN" : undefined);
}

async function planOf(options: DeployOptions, project: Project, config: Configuration): Promise<Plan> {
  const { others, values, isDry } = options;
  // A dry run works without a login.
  const account = await Account.open(config.account_id).catch((error) => (isDry ? undefined : Promise.reject(error)));
  const [edge, worker] = await Promise.all([
    account?.bindings(project.name),
    account?.bindings(workerName(project.name)),
  ]);
  const [form, location] = [formOf(edge, options), locationOf(edge, options)];
  const choice = hasRunner(config)
    ? await chooseContainer({
        root: project.root,
        account,
        edge: [...(edge ?? []), ...secretsFor(options)],
        worker,
        isRequested: options.container,
        image: values.image,
        secretsFile: values["container-secrets"],
      })
    : undefined;
  const hasCallers = "AUTH_MODE" in config.vars || others.some((arg) => /^--(secrets-file|var)\b/.test(arg));
  const needsCaller = !hasCallers && !isDry && !edge?.some(({ name }) => name === "AUTH_MODE");
  return { account, edge, hasWorker: worker !== undefined, choice, form, location, hasCallers, needsCaller };
}

/**
 * Deploys the edge and the container's Worker, in the order in which they need each other, and shows the new tokens. Resolves
 * to the addresses of the edge; undefined if a part failed.
 */
async function deployParts(
  options: DeployOptions,
  project: Target,
  { account, hasWorker, choice, location }: Plan,
  { variables, tokens }: { variables: Record<string, string>; tokens: Tokens },
): Promise<readonly string[] | undefined> {
  const { others, isDry } = options;
  const varArgs = Object.entries(variables).flatMap(([name, value]) => ["--var", `${name}:${value}`]);
  const secrets = tokens.caller ? ["--secrets-file", tokens.caller.secretsFile] : [];
  // The free plan has no Containers, and refuses a deployment that sets limits.
  const isPaid = !hasOwnConfig(others) && (options.isPaid || (await account?.hasContainers()) === true);
  const deployEdge = async (isBound: boolean) => {
    const isContainer = isBound && !hasOwnConfig(others) && choice?.runsIn === "container";
    const containers = isContainer ? workerName(project.name) : undefined;
    await using additions = await withAdditions(configurationOf(project), { isPaid, containers });
    return await project.runWrangler(["deploy", ...additions.args, ...others, "--keep-vars", ...varArgs, ...secrets]);
  };
  const deployWorker = () => deployContainer(choice, project, options, location);
  // An existing worker gets new functions before the edge lists them. A new worker needs the edge's Durable Objects first.
  if (hasWorker && !(await deployWorker())) return undefined;
  const targets = await deployEdge(hasWorker || isDry);
  if (!targets) return undefined;
  // At once, because the edge has them now: if a later part fails, the next deployment creates none.
  if (!isDry) showTokens(addressOf(targets) ?? "https://ITS-ADDRESS", project, tokens);
  if (!hasWorker && !(await deployWorker())) return undefined;
  // Edge and containers bind to each other, so the first time the edge is deployed again once the containers exist.
  if (!hasWorker && !isDry && !hasOwnConfig(others) && choice?.isDeployed) await deployEdge(true);
  // Only on request: the Worker may be one that `npm run deploy:container` created for a Resonate server elsewhere.
  if (hasWorker && options.container === false) await removeContainer(project, isDry ? ["--dry-run"] : []);
  return targets;
}

const addressOf = (targets: readonly string[]): string | undefined =>
  targets.find((target) => target.startsWith("https://"))?.replace(/\/+$/, "");

/** Whether the arguments name another configuration than the project's. */
const hasOwnConfig = (args: readonly string[]) => args.some((arg) => /^(--config|-c)\b/.test(arg));

const hasRunner = ({ durable_objects }: Configuration) =>
  durable_objects?.bindings?.some(({ name }) => name === "RUNNER") ?? false;

async function askForWorkers(): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined;
  const answer = await ask("Shall workers on machines of your own take jobs, too (a private network, a GPU)? [y/N] ");
  return /^y/i.test(answer) ? "machine" : undefined;
}

async function ask(question: string): Promise<string> {
  const readline = createInterface({ input: process.stdin, output: process.stdout });
  return (await readline.question(question).finally(() => readline.close())).trim();
}

/** Deploys the container if that was chosen. Resolves with false if it failed. */
async function deployContainer(
  choice: Choice | undefined,
  { root, name, runWrangler }: Target,
  { isDry, values }: DeployOptions,
  vars: Record<string, string>,
): Promise<boolean> {
  if (!choice?.isDeployed) return true;
  const config = await containerConfig(root, name, { image: values.image, vars });
  if (config === undefined) return true;
  const file = values["container-secrets"];
  const targets = await runWrangler([
    "deploy",
    "--config",
    config,
    "--keep-vars",
    ...(isDry ? ["--dry-run"] : []),
    ...(file === undefined ? [] : ["--secrets-file", file]),
  ]);
  return targets !== undefined;
}

async function examine(origin: string, { caller, operator }: Tokens): Promise<void> {
  print(`\nWaiting for ${origin} ...`);
  if (!(await isReady(origin))) print("It is not ready yet; what is wrong:");
  if (caller) process.env.DOCTOR_TOKEN = caller.token;
  if (operator) process.env.OPERATOR_TOKEN = operator.token;
  await runDoctor(["--url", origin]);
}

function showTokens(origin: string, project: Project, { caller, worker, operator }: Tokens): void {
  const showToken = (whose: string, token: string) =>
    print(`\nThe token of ${whose}, which is stored nowhere and not shown again:\n\n  ${token}`);
  if (caller) {
    showToken(caller.name, caller.token);
    print("\nClients send it as `Authorization: Bearer …`; the proxy reads it from MCP_TOKEN.");
  }
  if (operator) showToken(`the operator ${operator.name} (OPERATOR_TOKEN for commands)`, operator.token);
  if (worker) {
    const command = commandLine(project, "worker");
    print(`\nA worker elsewhere, ${worker.name}, with a token that is not shown again:\n`);
    print(`  RESONATE_URL=${origin}/resonate RESONATE_TOKEN=${worker.token} ${command}`);
  }
}

function showClients(origin: string, { name }: Project, token: string | undefined): void {
  for (const { host, file, paste } of localSetups({ name, url: `${origin}/mcp`, token }))
    print(`\n${host}: ${file ?? "run in a terminal"}\n${paste}`);
}

async function isReady(origin: string): Promise<boolean> {
  for (const end = Date.now() + READY_TIMEOUT_MS; Date.now() < end; await delay(1_000)) {
    if (await isOk(`${origin}/ready`)) return true;
  }
  return false;
}

async function remove(args: readonly string[], project: Target, config: Configuration): Promise<void> {
  const { name, runWrangler } = project;
  const others = args.filter((arg) => arg !== "--remove" && arg !== "--yes");
  const isDry = others.includes("--dry-run");
  const account = isDry ? undefined : await Account.open(config.account_id);
  const users = (await account?.users(name))?.filter((user) => user !== workerName(name)) ?? [];
  for (const user of users) print(`${user} uses it, and will break.`);
  if (!args.includes("--yes") && !isDry) {
    const question = `This removes ${name} from Cloudflare, with every job and result that it keeps. Type its name to continue: `;
    if ((await ask(question)) !== name) {
      print("Nothing was removed.");
      process.exitCode = 1;
      return;
    }
  }
  // The name that was typed replaces wrangler's own questions.
  const force = isDry ? [] : ["--force"];
  // The container's Worker is removed first, because it uses the edge's objects.
  const hasContainer = (await account?.bindings(workerName(name))) !== undefined;
  if (hasContainer && !(await removeContainer(project, force))) return;
  await runWrangler(["delete", ...others, ...force]);
}

/** Removes the container's Worker. Resolves with false if wrangler cannot. */
async function removeContainer({ root, name, runWrangler }: Target, others: readonly string[]): Promise<boolean> {
  const config = await containerConfig(root, name);
  if (config === undefined) return true;
  return (await runWrangler(["delete", "--config", config, ...others])) !== undefined;
}
