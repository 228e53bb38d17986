/**
 * Durable functions made at random: trees of calls, which are run by the engine and by a model of it. What a step returns
 * says what its flow had seen when it was called, so that an outcome that came to the wrong flow changes all that follows.
 */
import {
  type Budgets,
  MINUTE,
  NonRetryableError,
  type Retry,
  SECOND,
  type StepOptions,
} from "../../core/definitions/context.ts";

/** What a tree uses of a context. */
export interface ContextCalls {
  step(name: string, fn: (step: { attempt: number }) => unknown, options?: StepOptions): Promise<unknown>;
  sleep(name: string, ms: number): Promise<unknown>;
  ask(name: string): Promise<unknown>;
  /** What is sent to a callback, within so many milliseconds. */
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
  race(name: string, branches: Record<string, (calls: ContextCalls) => Promise<unknown>>): Promise<unknown>;
}

/** The kinds of values that a step gives; `odd` ones do not survive storing. */
export type Gives = "seen" | "list" | "null" | "nothing" | "marked" | "deep";

export type Node = { name: string } & (
  | {
      do: "step";
      ms: number;
      fails: number;
      slow: boolean;
      end: "well" | "error" | "final";
      /** In a later attempt at the job it ends well. */
      heals: boolean;
      gives: Gives;
    }
  | { do: "sleep"; ms: number }
  | { do: "ask" | "emit" }
  | { do: "callback"; isNever: boolean }
  | { do: "spend"; amount: number; budget: keyof typeof BUDGET }
  /** Values from the job's seed. */
  | { do: "draw" }
  | { do: "job"; job: string }
  | { do: "until"; ms: number; every: number; isNever: boolean }
  | { do: "seq" | "all" | "any" | "race"; of: Node[] }
  /** What fails is undone by the second. */
  | { do: "undo"; of: Node[] }
  | { do: "items"; of: Node[]; concurrency: number }
  | { do: "try" | "background" | "helpers"; body: Node }
  | { do: "loop"; times: number; body: Node }
  /** The same for several, side by side, in the context around; over one list where there are fewer `workers`. */
  | { do: "fan"; times: number; workers: number; body: Node }
  /** Items that use the context around them. */
  | { do: "outer"; ms: number }
  | { do: "throw" }
  /** What breaks a rule. */
  | { do: "foreign"; ms: number }
  | { do: "foreignEnd"; ms: number }
  | { do: "inner"; ms: number }
  | { do: "odd"; what: "date" | "nan" | "map" | "class" | "cycle" }
);

/** What a program may spend: some fail, some ask and are allowed more, and some ask and are not. */
export const BUDGET = {
  plain: { limit: 30 },
  asked: { limit: 10, onExceeded: "ask" },
  denied: { limit: 30, onExceeded: "ask" },
} as const satisfies Budgets;

export interface ProgramTree {
  root: Node;
  /** Whether all flows change one variable, so that the order of outcomes shows. */
  shares: boolean;
}

/** A function that goes on under its name, in one run for each tree. */
export interface Program {
  trees: readonly ProgramTree[];
}

/** What runs a tree: how long things take, and the time. */
export interface Machine {
  pause(ms: number): Promise<void>;
  /** What is awaited outside of the context; default `pause`. */
  outside?(): Promise<void>;
  now(): number;
  /** How much slower than it says something is. */
  speed(): number;
  /** Which attempt at the job this is, counted from 1. */
  attempt: number;
  /** Told of each call, with what tells it from others of its name. */
  onCall?(calls: ContextCalls, name: string, what: string): void;
}

/** When the job of a run began. */
const BEGUN = Date.UTC(2026, 0, 1);

interface Flow {
  seen: number;
}

/** What a run has come to: its value, and what the next begins with. */
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
  // A list of what gave nothing is refused as a result.
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
  // What was handed over is the function's own.
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

/** Helpers of helpers, and what is awaited that is there already. */
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

/** A hash of numbers and texts, 32 bits. */
export function mix(seed: number, value: number | string): number {
  let hash = seed | 0;
  for (const character of String(value)) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0;
  return Math.imul(hash ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
}

// --- what is known of a tree without running it ---------------------------------------------------------------------

const RULE_BREAKERS = new Set(["foreign", "foreignEnd", "inner", "odd"]);

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

/** Whether which of its calls are made depends on what is fast: something may be given up, or never come to its end. */
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
  return node.do === "throw" || (node.do === "job" && node.job === "bad");
}

/** Whether a rule is broken where nothing runs beside it: that shows under every timing. */
export function breaksAlone(node: Node): boolean {
  if (node.do === "inner" || node.do === "odd" || node.do === "foreign" || node.do === "foreignEnd") return true;
  if (["all", "any", "race", "background", "items", "fan"].includes(node.do)) {
    return [...nodesOf(node)].some(({ do: what }) => what === "inner" || what === "odd");
  }
  return childrenOf(node).some(breaksAlone);
}

/**
 * Whether names are used so that no timing can make them unsure: each in one flow only, of which no part is inside of a
 * loop over flows side by side.
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
      if (node.do === "items" || node.do === "race") return visit(child, `${scope}/${own}.${i}`, "", false);
      const isSide = ["all", "any", "background"].includes(node.do);
      return visit(child, scope, isSide ? `${flow}/${own}.${i}` : flow, looped);
    });
  };
  return visit(root, "", "", false);
}

/** Whether it makes one call and no other. */
const isLeaf = ({ do: what }: Node): boolean =>
  ["step", "sleep", "ask", "callback", "emit", "job", "until"].includes(what);

/** The name of a call: a partial result has no other. */
function nameOf(node: Node): string {
  if (node.do === "callback" && node.isNever) return `${node.name} never`;
  return node.do === "emit" ? node.do : node.name;
}

/** Whether what a call gives depends on how many came before, so that it is another when outcomes come in another order. */
export const counts = (root: Node): boolean => holds(root, new Set(["draw", "spend"]));

/** Whether it calls its context, by its name. */
const isCall = (node: Node): boolean =>
  ![
    "seq",
    "all",
    "any",
    "try",
    "background",
    "helpers",
    "loop",
    "fan",
    "undo",
    "draw",
    "spend",
    "throw",
    "foreignEnd",
  ].includes(node.do);
