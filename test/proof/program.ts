/**
 * Random durable functions: trees of calls, which both the engine and a model of it run. The result of a step contains what its
 * flow had seen when the step was called, so an outcome that reaches the wrong flow changes everything after it.
 */
import {
  type Budgets,
  MINUTE,
  NonRetryableError,
  type Retry,
  SECOND,
  type StepOptions,
} from "../../core/author/context.ts";

/** The commands of a context that a tree uses. */
export interface ContextCalls {
  step(name: string, fn: (step: { attempt: number }) => unknown, options?: StepOptions): Promise<unknown>;
  sleep(name: string, ms: number): Promise<unknown>;
  ask(name: string): Promise<unknown>;
  /** Waits for the value sent to a callback, for at most `within` milliseconds. */
  callback(name: string, within: number | undefined): Promise<unknown>;
  spend(amount: number, of: string): Promise<unknown>;
  emit(value: unknown): Promise<unknown>;
  random(): number;
  uuid(): string;
  start(job: string, name: string): Promise<string>;
  await(job: string): Promise<unknown>;
  until(name: string, every: number, lasting: number | undefined, check: () => unknown): Promise<unknown>;
  all(
    name: string,
    count: number,
    concurrency: number,
    fn: (calls: ContextCalls, i: number) => Promise<unknown>,
  ): Promise<unknown>;
  cleanup(name: string, fn: (calls: ContextCalls) => Promise<unknown>): Promise<unknown>;
  onUndo(name: string, fn: () => unknown): void;
  race(name: string, branches: Record<string, (calls: ContextCalls) => Promise<unknown>>): Promise<unknown>;
}

/** The kinds of values that a step returns. All of them can be stored, unlike those of `odd` nodes. */
export type Gives = "seen" | "list" | "null" | "nothing" | "marked" | "deep";

export type Node = { name: string } & (
  | {
      do: "step";
      ms: number;
      fails: number;
      slow: boolean;
      end: "well" | "error" | "final";
      /** Whether it succeeds in a later generation of the job. */
      heals: boolean;
      gives: Gives;
    }
  | { do: "sleep"; ms: number }
  | { do: "ask" | "emit" | "onUndo" }
  | { do: "callback"; isNever: boolean }
  | { do: "spend"; amount: number; budget: keyof typeof BUDGET }
  /** Draws values from the job's seed. */
  | { do: "draw" }
  | { do: "job"; job: string }
  | { do: "until"; ms: number; every: number; isNever: boolean }
  | { do: "seq" | "all" | "any" | "race"; of: Node[] }
  /** If the first node fails, the second one undoes it. */
  | { do: "undo"; of: Node[] }
  | { do: "items"; of: Node[]; concurrency: number }
  | { do: "try" | "background" | "helpers" | "cleanup"; body: Node }
  | { do: "loop"; times: number; body: Node }
  /** Runs `body` several times, side by side, in the surrounding context; `workers` flows take the items from one list. */
  | { do: "fan"; times: number; workers: number; body: Node }
  /** Items of `ctx.all` that use the surrounding context instead of their own. */
  | { do: "outer"; ms: number }
  | { do: "throw" }
  /** The remaining nodes break a rule of durable functions. */
  | { do: "foreign"; ms: number }
  | { do: "foreignEnd"; ms: number }
  | { do: "inner"; ms: number }
  | { do: "odd"; what: "date" | "nan" | "map" | "class" | "cycle" }
);

/** The budgets: above its limit, `plain` fails, `asked` asks and is granted more, and `denied` asks and is refused. */
export const BUDGET = {
  plain: { limit: 30 },
  asked: { limit: 10, onExceeded: "ask" },
  denied: { limit: 30, onExceeded: "ask" },
} as const satisfies Budgets;

export interface ProgramTree {
  root: Node;
  /** Whether all flows change one variable, so that the order of outcomes affects values. */
  shares: boolean;
}

/** A function that executes each tree in its own run of the job, through `ctx.continueAs`. */
export interface Program {
  trees: readonly ProgramTree[];
}

/** The environment in which a tree runs: durations and the time. */
interface Machine {
  pause(ms: number): Promise<void>;
  /** Awaits something outside of the context. Default: `pause`. */
  outside?(): Promise<void>;
  now(): number;
  /** The factor by which the next duration exceeds its nominal value. */
  speed(): number;
  /** The job's generation, counted from 1. */
  attempt: number;
  /** Called for each call; `what` distinguishes it from other calls of the same name. */
  onCall?(calls: ContextCalls, name: string, what: string): void;
}

/** The start time of the job, in milliseconds since the epoch. */
const BEGUN = Date.UTC(2026, 0, 1);

interface Flow {
  seen: number;
}

/** The result of a run: its value, and the `seen` with which the next run begins. */
export interface TreeResult {
  value: unknown;
  seen: number;
}

export function runTree(
  { root, shares }: ProgramTree,
  calls: ContextCalls,
  machine: Machine,
  seen = 1,
): Promise<TreeResult> {
  const flow = { seen };
  const branch = (from: Flow, i: number): Flow => (shares ? flow : { seen: mix(from.seen, i) });
  // The engine refuses a result that contains undefined values, so they become null.
  const result = (value: unknown) => ({ value: JSON.parse(JSON.stringify(value) ?? "null"), seen: flow.seen });
  return evaluate(root, calls, flow, { machine, branch }).then(result);
}

interface How {
  machine: Machine;
  branch(from: Flow, i: number): Flow;
}

async function evaluate(node: Node, calls: ContextCalls, flow: Flow, how: How): Promise<unknown> {
  const value = await evaluated(node, calls, flow, how);
  flow.seen = mix(flow.seen, JSON.stringify(value) ?? "");
  // The function may change a value that it was given: nothing else may see the change.
  if (Array.isArray(value)) value.push("mine");
  return value;
}

async function evaluated(node: Node, calls: ContextCalls, flow: Flow, how: How): Promise<unknown> {
  const { machine, branch } = how;
  const side = (of: Node, i: number, own = calls) => evaluate(of, own, branch(flow, i), how);
  if (isCall(node)) machine.onCall?.(calls, nameOf(node), `${node.do} ${flow.seen}`);
  switch (node.do) {
    case "step": {
      const { seen } = flow;
      return calls.step(node.name, ({ attempt }) => work(node, seen, attempt, machine), optionsOf(node));
    }
    case "sleep":
      return calls.sleep(node.name, node.ms);
    case "ask":
      return calls.ask(node.name);
    case "emit":
      return calls.emit({ seen: flow.seen });
    case "callback":
      return calls.callback(nameOf(node), node.isNever ? 200 : undefined);
    case "spend":
      return calls.spend(node.amount, node.budget);
    case "onUndo": {
      const { seen } = flow;
      calls.onUndo(node.name, () => ({ undone: seen }));
      return "registered";
    }
    case "cleanup":
      return calls.cleanup(nameOf(node), (own) => evaluate(node.body, own, flow, how));
    case "draw":
      return [calls.random(), calls.uuid()];
    case "job":
      return calls.await(await calls.start(node.job, node.name));
    case "until": {
      const { seen } = flow;
      const check = () => !node.isNever && machine.now() - BEGUN >= node.ms && { seen };
      return calls.until(node.name, node.every, node.isNever ? node.ms : undefined, check);
    }
    case "seq": {
      const results = [];
      for (const each of node.of) results.push(await evaluate(each, calls, flow, how));
      return results;
    }
    case "undo": {
      const [body, undo] = node.of as [Node, Node];
      try {
        return await evaluate(body, calls, flow, how);
      } catch (error) {
        await evaluate(undo, calls, flow, how);
        throw error;
      }
    }
    case "loop": {
      const results = [];
      for (let i = 0; i < node.times; i++) results.push(await evaluate(node.body, calls, flow, how));
      return results;
    }
    case "fan": {
      const list = Array.from({ length: node.times }, (_, i) => i).values();
      const results: unknown[] = [];
      const worker = async () => {
        for (const i of list) results[i] = await side(node.body, i);
      };
      await Promise.all(Array.from({ length: Math.min(node.workers, node.times) }, worker));
      return results;
    }
    case "outer":
      return calls.all(node.name, 2, 2, async (own, i) => {
        await own.step("inside", () => machine.pause((i + 1) * node.ms * machine.speed()));
        machine.onCall?.(calls, `${node.name} title`, String(i));
        return calls.step(`${node.name} title`, () => i);
      });
    case "all":
      return Promise.all(node.of.map((each, i) => side(each, i)));
    case "any":
      return Promise.race(node.of.map((each, i) => side(each, i)));
    case "items":
      return calls.all(node.name, node.of.length, node.concurrency, (own, i) => side(node.of[i] as Node, i, own));
    case "race":
      return calls.race(
        node.name,
        Object.fromEntries(node.of.map((each, i) => [`b${i}`, (own: ContextCalls) => side(each, i, own)])),
      );
    case "try":
      try {
        return { well: await evaluate(node.body, calls, flow, how) };
      } catch (error) {
        const { name, message, code, attempts } = error as Error & { code?: unknown; attempts?: unknown };
        return { name, message, code, attempts };
      }
    case "background":
      side(node.body, 7).catch(() => {});
      return "background";
    case "helpers":
      return behind(() => evaluate(node.body, calls, flow, how), 30);
    case "throw":
      throw Object.assign(new TypeError(`thrown by ${node.name}`), { code: 7 });
    case "foreign":
      await (machine.outside?.() ?? machine.pause(node.ms * machine.speed()));
      return calls.step(node.name, () => 1);
    case "foreignEnd":
      await (machine.outside?.() ?? machine.pause(node.ms * machine.speed()));
      return "awaited";
    case "inner":
      return calls.step(node.name, async () => {
        await machine.pause(node.ms * machine.speed());
        await calls.sleep(`${node.name} inside`, 5);
        return 1;
      });
    case "odd":
      return calls.step(node.name, () => oddOnes[node.what]());
  }
}

/** Calls `fn` through nested helper functions and many awaits of settled values, which must not count as foreign waits. */
async function behind<T>(fn: () => Promise<T>, depth: number): Promise<T> {
  if (depth > 0) return await behind(fn, depth - 1);
  for (let i = 0; i < 400; i++) await undefined;
  return await fn();
}

type StepNode = Extract<Node, { do: "step" }>;

function optionsOf({ fails, slow, end }: StepNode): StepOptions {
  const initialInterval = slow ? 20 * SECOND : 100;
  const retry: Retry = { initialInterval, maxInterval: MINUTE, ...(end === "error" && { maxAttempts: fails + 1 }) };
  return { retry };
}

async function work(
  { name, ms, fails, heals, gives, ...rest }: StepNode,
  seen: number,
  attempt: number,
  machine: Machine,
) {
  const end = heals && machine.attempt > 1 ? "well" : rest.end;
  if (ms > 0) await machine.pause(ms * machine.speed());
  if (attempt <= fails) throw new Error(`${name} failed ${attempt} times`);
  if (end === "error") throw Object.assign(new Error(`${name} fails`), { code: "EFAIL" });
  if (end === "final") throw new NonRetryableError(`${name} cannot be done`);
  switch (gives) {
    case "seen":
      return { name, seen, job: machine.attempt };
    case "list":
      return [name, seen, [seen]];
    case "null":
      return null;
    case "nothing":
      return undefined;
    case "marked":
      return { text: "__INF__", like: { __type: "error", message: "none" }, seen };
    case "deep":
      return [[[[seen]]], { a: { b: [null, -1.5e-7, "\u2028", "\ud800"] } }];
  }
}

const oddOnes: Record<Extract<Node, { do: "odd" }>["what"], () => unknown> = {
  date: () => new Date(0),
  nan: () => [Number.NaN],
  map: () => ({ within: new Map() }),
  class: () =>
    new (class Money {
      amount = 1;
    })(),
  cycle: () => {
    const one: { self?: unknown } = {};
    one.self = one;
    return one;
  },
};

/** Mixes a number or a text into a 32-bit hash. */
export function mix(seed: number, value: number | string): number {
  let hash = seed | 0;
  for (const character of String(value)) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0;
  return Math.imul(hash ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
}

// --- properties of a tree that are known without running it ---------------------------------------------------------

const RULE_BREAKERS = new Set(["foreign", "foreignEnd", "inner"]);

function childrenOf(node: Node): Node[] {
  if ("of" in node) return node.of;
  return "body" in node ? [node.body] : [];
}

function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (const child of childrenOf(node)) yield* nodesOf(child);
}

const holds = (root: Node, kinds: ReadonlySet<string>): boolean =>
  [...nodesOf(root)].some((node) => kinds.has(node.do));

export const breaksRules = (root: Node): boolean => holds(root, RULE_BREAKERS);

/** Whether timing decides which calls the node makes, because something may be given up or never end. */
export function isTimed(node: Node, isCaught = false): boolean {
  if (["any", "race", "background"].includes(node.do)) return true;
  if (node.do === "spend" && node.budget !== "asked") return true;
  if (fails(node)) return !isCaught;
  const catches = node.do === "try" || (isCaught && ["seq", "loop", "helpers"].includes(node.do));
  return childrenOf(node).some((child) => isTimed(child, catches));
}

function fails(node: Node): boolean {
  if (node.do === "callback") return node.isNever;
  if (node.do === "step") return node.end !== "well";
  if (node.do === "until") return node.isNever;
  return node.do === "throw" || node.do === "odd" || (node.do === "job" && node.job === "bad");
}

/** Whether the node breaks a rule in a place where nothing runs beside it, so that every timing reveals it. */
export function breaksAlone(node: Node): boolean {
  if (node.do === "inner" || node.do === "foreign" || node.do === "foreignEnd") return true;
  if (["all", "any", "race", "background", "items", "fan"].includes(node.do)) {
    return [...nodesOf(node)].some(({ do: what }) => what === "inner");
  }
  return childrenOf(node).some(breaksAlone);
}

/**
 * Whether no timing can make the names of calls ambiguous: each name is used in one flow only, and not in a loop of a flow that
 * runs side by side with others.
 */
export function namesAreSure(root: Node): boolean {
  const flows = new Map<string, string>();
  let scopes = 0;
  const visit = (node: Node, scope: string, flow: string, isLooped: boolean): boolean => {
    if ("name" in node && isCall(node)) {
      const key = `${scope}|${nameOf(node)}`;
      const within = isLooped && flow !== "" ? `${flow} looped` : flow;
      if (flows.has(key) ? flows.get(key) !== within : false) return false;
      if (within.endsWith("looped")) return false;
      flows.set(key, within);
    }
    const own = ++scopes;
    if (node.do === "outer") return false;
    const looped = isLooped || node.do === "loop";
    if (node.do === "fan" && !(isLeaf(node.body) && node.workers >= node.times)) {
      return node.times === 1 || ![...nodesOf(node.body)].some(isCall) ? visit(node.body, scope, flow, looped) : false;
    }
    return childrenOf(node).every((child, i) => {
      if (["items", "race", "cleanup"].includes(node.do)) return visit(child, `${scope}/${own}.${i}`, "", false);
      const isSide = ["all", "any", "background"].includes(node.do);
      return visit(child, scope, isSide ? `${flow}/${own}.${i}` : flow, looped);
    });
  };
  return visit(root, "", "", false);
}

/** Whether the node makes exactly one call. */
const isLeaf = ({ do: what }: Node): boolean =>
  ["step", "sleep", "ask", "callback", "emit", "job", "until"].includes(what);

/** The name of a call. Partial results have no names of their own. */
function nameOf(node: Node): string {
  if (node.do === "callback" && node.isNever) return `${node.name} never`;
  if (node.do === "cleanup") return `cleanup ${node.name}`;
  return node.do === "emit" ? node.do : node.name;
}

/** Whether the results of some calls depend on the number of earlier calls, and so on the order of outcomes. */
export const counts = (root: Node): boolean => holds(root, new Set(["draw", "spend"]));

const NAMELESS = new Set(
  "seq all any try background helpers loop fan undo onUndo draw spend throw foreignEnd".split(" "),
);

/** Whether the node calls its context under its name. */
const isCall = (node: Node): boolean => !NAMELESS.has(node.do);
