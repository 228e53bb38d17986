/** Where the account's own Resonate server is: a Durable Object. */

/** What there is of its namespace here. */
export interface ResonateNamespace extends Placeable {
  get(id: object, options?: object): { fetch: typeof fetch };
}

/** A namespace of Durable Objects, as far as it matters where they are. */
interface Placeable {
  idFromName(name: string): object;
  get(id: object, options?: object): unknown;
  jurisdiction?(name: string): this;
}

/** What a deployment's variables say of where its objects are: neither can change once they are there. */
export interface ObjectAddress {
  /** Near where: one of the platform's location hints. */
  RESONATE_LOCATION?: string | undefined;
  /** Where what they keep must stay: one of the platform's jurisdictions. */
  RESONATE_JURISDICTION?: string | undefined;
}

/** A namespace's objects where the deployment says that they are. Of other ones they have the same names. */
export function placed<N extends Placeable>(
  namespace: N,
  { RESONATE_LOCATION, RESONATE_JURISDICTION }: ObjectAddress,
): N {
  const objects = (RESONATE_JURISDICTION && namespace.jurisdiction?.(RESONATE_JURISDICTION)) || namespace;
  if (!RESONATE_LOCATION) return objects;
  const options = { locationHint: RESONATE_LOCATION };
  return { idFromName: (name: string) => objects.idFromName(name), get: (id: object) => objects.get(id, options) } as N;
}

/** Into how many objects promises are divided. It is part of their names: what was started stays where it is. */
const SHARDS = 1;

/** Sends requests to the object, whatever host their URL names. */
export function fetchFrom(namespace: ResonateNamespace): typeof fetch {
  return (url, init) => namespace.get(namespace.idFromName(`resonate 1 of ${SHARDS}`)).fetch(url, init);
}

/** What seals the task ids of the deployment. */
export async function keyFrom(namespace: ResonateNamespace): Promise<string> {
  const response = await fetchFrom(namespace)("http://resonate/key");
  if (!response.ok) throw new Error(`the Resonate object answered ${response.status}`);
  return response.text();
}
