/** What a function's variables hold, and by what two such values differ. */

/** How many parts of one value are looked at. A larger one is not compared. */
const MAX_PARTS = 1_000;

/** A value that is too large, or that nothing can be told about. */
export const UNKNOWN = Symbol("unknown");

/** A copy of the plain data in a value, in which all other objects are themselves; {@link UNKNOWN} for too large a value. */
export function copyOf(value: unknown): unknown {
  const budget = { parts: MAX_PARTS };
  const copy = copied(value, budget);
  return budget.parts < 0 ? UNKNOWN : copy;
}

/**
 * The path of the first difference between two values; undefined if there is none, or if nothing can be told. Objects that are no
 * plain data (a client, a pool, a logger) differ only if `byIdentity`.
 */
export function pathOfDifference(one: unknown, other: unknown, byIdentity: boolean): string | undefined {
  if (one === UNKNOWN || other === UNKNOWN) return undefined;
  const budget = { parts: MAX_PARTS };
  const path = differenceIn(one, other, byIdentity, budget);
  return budget.parts < 0 ? undefined : path;
}

type Kind = "list" | "record" | "map" | "set" | "date" | "url" | "primitive" | "object";

function kindOf(value: unknown): Kind {
  if (typeof value === "function") return "object";
  if (typeof value !== "object" || value === null) return "primitive";
  if (Array.isArray(value)) return "list";
  switch (Object.getPrototypeOf(value)) {
    case Object.prototype:
    case null:
      return isData(value) ? "record" : "object";
    case Map.prototype:
      return "map";
    case Set.prototype:
      return "set";
    case Date.prototype:
      return "date";
    case URL.prototype:
      return "url";
    default:
      return "object";
  }
}

/** Whether an object has no methods and no accessors: those that have keep a state of their own, such as a client. */
const isData = (value: object): boolean =>
  Object.values(Object.getOwnPropertyDescriptors(value)).every(
    (property) => "value" in property && typeof property.value !== "function",
  );

interface Budget {
  parts: number;
}

function copied(value: unknown, budget: Budget): unknown {
  budget.parts -= 1;
  if (budget.parts < 0) return undefined;
  switch (kindOf(value)) {
    case "list":
      return (value as unknown[]).slice(0, MAX_PARTS + 1).map((each) => copied(each, budget));
    case "record":
      return Object.fromEntries(Object.entries(value as object).map(([key, each]) => [key, copied(each, budget)]));
    case "map":
      return new Map([...(value as Map<unknown, unknown>)].map(([key, each]) => [key, copied(each, budget)]));
    case "set":
      return new Set(value as Set<unknown>);
    case "date":
      return new Date(value as Date);
    case "url":
      return new URL(value as URL);
    default:
      return value;
  }
}

function differenceIn(one: unknown, other: unknown, byIdentity: boolean, budget: Budget): string | undefined {
  if (Object.is(one, other)) return undefined;
  budget.parts -= 1;
  if (budget.parts < 0) return undefined;
  const kind = kindOf(one);
  if (kind !== kindOf(other)) return "";
  switch (kind) {
    case "list":
      return differenceInList(one as unknown[], other as unknown[], byIdentity, budget);
    case "record":
      return differenceInRecord(one as Fields, other as Fields, byIdentity, budget);
    case "map":
      return mapsDiffer(one as Map<unknown, unknown>, other as Map<unknown, unknown>, byIdentity, budget)
        ? ""
        : undefined;
    case "set":
      return setsDiffer(one as Set<unknown>, other as Set<unknown>) ? "" : undefined;
    case "date":
    case "url":
      return JSON.stringify(one) === JSON.stringify(other) ? undefined : "";
    case "primitive":
      return "";
    case "object":
      return byIdentity ? "" : undefined;
  }
}

type Fields = Record<string, unknown>;

function differenceInList(one: unknown[], other: unknown[], byIdentity: boolean, budget: Budget): string | undefined {
  for (let i = 0; i < Math.max(one.length, other.length) && budget.parts >= 0; i++) {
    const within = differenceIn(one[i], other[i], byIdentity, budget);
    if (within !== undefined) return `[${i}]${within}`;
  }
  return one.length === other.length ? undefined : ".length";
}

function differenceInRecord(one: Fields, other: Fields, byIdentity: boolean, budget: Budget): string | undefined {
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const within = differenceIn(one[key], other[key], byIdentity, budget);
    if (within !== undefined) return `.${key}${within}`;
  }
  return undefined;
}

/** Keys that are objects are themselves in a copy, and others when the function runs again: nothing is told by them. */
const isObject = (key: unknown): boolean => kindOf(key) !== "primitive";

const mapsDiffer = (one: Map<unknown, unknown>, other: Map<unknown, unknown>, byIdentity: boolean, budget: Budget) =>
  one.size !== other.size ||
  [...one].some(
    ([key, value]) =>
      !isObject(key) && (!other.has(key) || differenceIn(value, other.get(key), byIdentity, budget) !== undefined),
  );

const setsDiffer = (one: Set<unknown>, other: Set<unknown>) =>
  one.size !== other.size || [...one].some((each) => !isObject(each) && !other.has(each));
