/** The variables that a function can see. JavaScript's own inspector tells them; where there is none (in workerd), nothing does. */

/** The variables of one scope that have a value, by name. */
export type Scope = Readonly<Record<string, unknown>>;

interface Remote {
  objectId?: string;
}

interface Properties {
  internalProperties?: { name: string; value?: Remote }[];
}

interface Session {
  connect(): void;
  post(method: string, parameters: object, done: (error: Error | null, result: unknown) => void): void;
}

type Builtin = (name: string) => { Session: new () => Session } | undefined;

const builtin = (globalThis as { process?: { getBuiltinModule?: Builtin } }).process?.getBuiltinModule;

/** The global property by which values pass to and from the inspector. */
const EXCHANGE = Symbol.for("durable-mcp-edge.closure");
const EXCHANGE_EXPRESSION = `globalThis[Symbol.for(${JSON.stringify(EXCHANGE.description)})]`;

/** By which what the inspector keeps for a look is released. */
const OBJECT_GROUP = "durable-mcp-edge";

/** The scopes that belong to no call of a function. */
const OUTER_SCOPES = ["Module", "Script", "Global"];

/** One session for the process; undefined before the first look. */
let session: Session | undefined;

/** The scopes of the functions around `fn`, innermost first; none if they cannot be told. */
export function scopesOf(fn: object): readonly Scope[] {
  const exchange = globalThis as { [EXCHANGE]?: unknown };
  let scopes: { description: string; object: Scope }[] = [];
  try {
    exchange[EXCHANGE] = fn;
    const request = { expression: EXCHANGE_EXPRESSION, objectGroup: OBJECT_GROUP };
    const { objectId } = post<{ result: Remote }>("Runtime.evaluate", request).result;
    const { internalProperties = [] } = post<Properties>("Runtime.getProperties", { objectId, ownProperties: true });
    const list = internalProperties.find(({ name }) => name === "[[Scopes]]")?.value?.objectId;
    exchange[EXCHANGE] = (found: typeof scopes) => {
      scopes = Array.from(found); // The list has no iterator.
    };
    const functionDeclaration = `function () { ${EXCHANGE_EXPRESSION}(this) }`;
    post("Runtime.callFunctionOn", { objectId: list, functionDeclaration });
    post("Runtime.releaseObjectGroup", { objectGroup: OBJECT_GROUP });
    return scopes.flatMap(({ description, object }) => (OUTER_SCOPES.includes(description) ? [] : [readable(object)]));
  } catch {
    return [];
  } finally {
    delete exchange[EXCHANGE];
  }
}

/** A scope without the variables whose declaration has not been executed: an access to these throws. */
function readable(scope: Scope): Scope {
  const variables: Record<string, unknown> = {};
  for (const name of Object.keys(scope)) {
    try {
      variables[name] = scope[name];
    } catch {}
  }
  return variables;
}

/** Sends a request to the inspector of this process, which answers synchronously. */
function post<T>(method: string, parameters: object): T {
  session ??= connected();
  let answer: unknown;
  session.post(method, parameters, (error, result) => {
    if (error) throw error;
    answer = result;
  });
  return answer as T;
}

function connected(): Session {
  const inspector = builtin?.("node:inspector");
  if (!inspector) throw new Error("this platform has no inspector");
  const session = new inspector.Session();
  session.connect();
  return session;
}
