/** Where the account's own Resonate server is: a Durable Object. */

/** What there is of its namespace here. */
export interface ResonateNamespace {
  idFromName(name: string): object;
  get(id: object): { fetch: typeof fetch };
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
