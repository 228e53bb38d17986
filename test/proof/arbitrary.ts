import fc from "fast-check";
import type { Gives, Node, Program } from "./program.ts";

const GIVES: Gives[] = ["seen", "list", "null", "nothing", "marked", "deep"];
const ms = fc.constantFrom(0, 1, 5, 10, 20, 40, 80, 300);

/** A node of one kind with these fields. Its name is a placeholder: `named` sets the names at the end. */
const nodeOf = <K extends Node["do"], F extends object>(kind: K, fields: { [P in keyof F]: fc.Arbitrary<F[P]> }) =>
  fc.record({ do: fc.constant(kind), name: fc.constant(""), ...fields }) as fc.Arbitrary<{ do: K; name: string } & F>;

/** Mostly the first value. */
const mostly = <T>(usual: T, ...others: T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 8, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });

/** `isCalm`: all calls of the leaf are made, and none fails. */
function leafOf(isCalm: boolean): fc.Arbitrary<Node> {
  const end = isCalm ? fc.constant("well" as const) : mostly<"well" | "error" | "final">("well", "error", "final");
  const step = nodeOf("step", {
    ms,
    fails: fc.constantFrom(0, 0, 0, 0, 1, 2),
    slow: fc.boolean(),
    end,
    heals: fc.boolean(),
    gives: fc.constantFrom(...GIVES),
  });
  const isNever = isCalm ? fc.constant(false) : mostly(false, true);
  const budget = isCalm ? fc.constant("asked" as const) : fc.constantFrom("asked", "plain", "denied");
  const job = isCalm ? fc.constantFrom("one", "two") : fc.constantFrom("one", "two", "bad");
  const until = { ms: fc.constantFrom(1, 50, 500), every: fc.constantFrom(10, 60, 1_000), isNever };
  return fc.oneof(
    { weight: 16, arbitrary: step },
    { weight: 6, arbitrary: nodeOf("sleep", { ms }) },
    { weight: 3, arbitrary: nodeOf("ask", {}) },
    { weight: 2, arbitrary: nodeOf("emit", {}) },
    { weight: 2, arbitrary: nodeOf("draw", {}) },
    { weight: 2, arbitrary: nodeOf("onUndo", {}) },
    { weight: 2, arbitrary: nodeOf("callback", { isNever }) },
    { weight: 2, arbitrary: nodeOf("spend", { amount: fc.constantFrom(0, 3, 8), budget }) },
    { weight: 3, arbitrary: nodeOf("job", { job }) },
    { weight: 2, arbitrary: nodeOf("until", until) },
    { weight: isCalm ? 0 : 1, arbitrary: nodeOf("throw", {}) },
    { weight: 1, arbitrary: nodeOf("outer", { ms: fc.constantFrom(0, 10) }) },
  );
}

const breaker: fc.Arbitrary<Node> = fc.oneof(
  nodeOf("foreign", { ms: fc.constantFrom(0, 1, 15, 90) }),
  nodeOf("foreignEnd", { ms: fc.constantFrom(0, 1, 15, 90) }),
  nodeOf("inner", { ms: fc.constantFrom(0, 15) }),
  nodeOf("odd", { what: fc.constantFrom("date", "nan", "map", "class", "cycle") }),
);

function treeOf(isCalm: boolean): fc.Arbitrary<Node> {
  return fc.letrec<{ node: Node }>((tie) => {
    const node = tie("node");
    const of = fc.array(node, { minLength: 2, maxLength: 4, depthIdentifier: "tree" });
    const concurrency = fc.constantFrom(1, 2, Number.POSITIVE_INFINITY);
    const fan = {
      times: fc.integer({ min: 1, max: 4 }),
      workers: fc.constantFrom(2, 4, 4),
      body: fc.oneof({ weight: 2, arbitrary: leafOf(isCalm) }, { weight: 1, arbitrary: node }),
    };
    return {
      node: fc.oneof(
        { maxDepth: 3, depthSize: "large", depthIdentifier: "tree" },
        { weight: 8, arbitrary: leafOf(isCalm) },
        { weight: 4, arbitrary: nodeOf("seq", { of }) },
        { weight: 3, arbitrary: nodeOf("all", { of }) },
        { weight: 2, arbitrary: nodeOf("items", { of, concurrency }) },
        { weight: 2, arbitrary: nodeOf("try", { body: node }) },
        { weight: 1, arbitrary: nodeOf("helpers", { body: node }) },
        { weight: 1, arbitrary: nodeOf("cleanup", { body: node }) },
        { weight: isCalm ? 0 : 2, arbitrary: nodeOf("undo", { of: fc.tuple(node, node) }) },
        { weight: 1, arbitrary: nodeOf("loop", { times: fc.integer({ min: 1, max: 3 }), body: node }) },
        { weight: 1, arbitrary: nodeOf("fan", fan) },
        { weight: isCalm ? 0 : 1, arbitrary: nodeOf("any", { of }) },
        { weight: isCalm ? 0 : 1, arbitrary: nodeOf("race", { of }) },
        { weight: isCalm ? 0 : 1, arbitrary: nodeOf("background", { body: node }) },
      ),
    };
  }).node;
}

/** Gives each node a unique name, or one of the few `names`. */
function named(root: Node, names: readonly number[] | undefined): Node {
  let count = 0;
  const visit = (node: Node): Node => {
    const n = count++;
    const own = { ...node, name: names ? `n${names[n % names.length]}` : `n${n}` };
    if ("of" in own) return { ...own, of: own.of.map(visit) };
    return "body" in own ? { ...own, body: visit(own.body) } : own;
  };
  return visit(root);
}

/** Adds a node that breaks a rule somewhere in the tree. */
function broken(root: Node, breaker: Node, at: number): Node {
  return at % 3 === 0 || !("of" in root)
    ? { do: "seq", name: "", of: at % 2 === 0 ? [root, breaker] : [breaker, root] }
    : { ...root, of: root.of.map((each, i) => (i === 0 ? broken(each, breaker, Math.floor(at / 3)) : each)) };
}

/** A group, one of whose items or branches cleans up if the job is cancelled, in a function that then cleans up as well. */
function cleaned(group: "race" | "items", trees: Node[], concurrency: number): Node {
  const undo = (body: Node, undo: Node): Node => ({
    do: "undo",
    name: "",
    of: [body, { do: "cleanup", name: "", body: undo }],
  });
  const sleep: Node = { do: "sleep", name: "", ms: 300 };
  const of = [undo(sleep, trees[0] as Node), ...trees];
  return undo(group === "race" ? { do: group, name: "", of } : { do: group, name: "", of, concurrency }, {
    do: "sleep",
    name: "",
    ms: 5,
  });
}

const few = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 6, maxLength: 12 });

const some = <T>(weight: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

/** Programs mostly of one run. Some continue in a second and a third run. */
export const program: fc.Arbitrary<Program> = fc
  .record({
    trees: fc.boolean().chain((isCalm) => fc.array(treeOf(isCalm), { minLength: 1, maxLength: 3 })),
    later: some(
      3,
      fc.boolean().chain((isCalm) => fc.array(treeOf(isCalm), { minLength: 1, maxLength: 2 })),
    ),
    breaker: some(7, breaker),
    at: fc.nat(30),
    names: some(2, few),
    shares: fc.boolean(),
    group: some(4, fc.constantFrom("race" as const, "items" as const)),
  })
  .map(({ trees, later = [], breaker, at, names, shares, group }) => {
    const root: Node = group ? cleaned(group, trees, 1 + (at % 3)) : { do: "seq", name: "", of: trees };
    const first = breaker ? broken(root, breaker, at) : root;
    return { trees: [first, ...later].map((each) => ({ root: named(each, names), shares })) };
  });
