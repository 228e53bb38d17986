/** The address of the account's own Resonate server: a Durable Object. */

/** The part of its namespace that is used here. */
export interface ResonateNamespace extends Locatable {
  get(id: object, options?: object): { fetch: typeof fetch };
}

/** The part of a namespace of Durable Objects that decides their location. */
export interface Locatable {
  idFromName(name: string): object;
  get(id: object, options?: object): unknown;
  jurisdiction?(name: string): this;
}

/** The variables that say where a deployment's objects are. Neither can change once they exist. */
export interface ObjectAddress {
  /** One of the platform's location hints. */
  RESONATE_LOCATION?: string | undefined;
  /** Where their data must stay: one of the platform's jurisdictions. */
  RESONATE_JURISDICTION?: string | undefined;
}

/** The namespace whose objects are at the place that the variables name. Other places may have objects with the same names. */
export function withLocation<N extends Locatable>(
  namespace: N,
  { RESONATE_LOCATION, RESONATE_JURISDICTION }: ObjectAddress,
): N {
  const objects = (RESONATE_JURISDICTION && namespace.jurisdiction?.(RESONATE_JURISDICTION)) || namespace;
  if (!RESONATE_LOCATION) return objects;
  const options = { locationHint: RESONATE_LOCATION };
  return { idFromName: (name: string) => objects.idFromName(name), get: (id: object) => objects.get(id, options) } as N;
}

/** Sends requests to the object, for any host in their URL. */
export function fetchFrom(namespace: ResonateNamespace): typeof fetch {
  return (url, init) => namespace.get(namespace.idFromName("resonate 1 of 1")).fetch(url, init);
}

/** The roles of the objects of one caller, and of the only ones that serve operators and list the callers' objects. */
export const CALLER_ROLE = "caller";
export const OPERATORS_ROLE = "operators";
export const CALLERS_ROLE = "callers";

/** The name of an object: its role, the deployment's namespace at the Resonate server, and the key of its caller, if it has one. */
export const objectName = (role: string, namespace: string, key = ""): string => `${role} ${namespace}${key}`;

/** The key that seals the task ids of the deployment. */
export async function keyFrom(namespace: ResonateNamespace): Promise<string> {
  const response = await fetchFrom(namespace)("http://resonate/key");
  if (!response.ok) throw new Error(`the Resonate object answered ${response.status}`);
  return response.text();
}
