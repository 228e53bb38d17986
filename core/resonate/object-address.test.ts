import { expect, test } from "vitest";
import { fetchFrom, withLocation } from "./object-address.ts";

/** A namespace like the platform's, which records the objects that are requested and sends nothing. */
class FakeNamespace {
  readonly asked: object[] = [];
  readonly #jurisdiction: string | undefined;

  constructor(jurisdiction?: string, asked: object[] = []) {
    this.#jurisdiction = jurisdiction;
    this.asked = asked;
  }

  idFromName(name: string): object {
    return { name, jurisdiction: this.#jurisdiction };
  }

  get(id: object, options?: object): { fetch: typeof fetch } {
    this.asked.push({ ...id, ...options });
    return { fetch: async () => new Response() };
  }

  jurisdiction(name: string): this {
    return new FakeNamespace(name, this.asked) as this;
  }
}

const SERVER = "resonate 1 of 1";

test.each([
  [{}, { name: SERVER, jurisdiction: undefined }],
  [{ RESONATE_LOCATION: "weur" }, { name: SERVER, jurisdiction: undefined, locationHint: "weur" }],
  [{ RESONATE_JURISDICTION: "eu" }, { name: SERVER, jurisdiction: "eu" }],
  [
    { RESONATE_JURISDICTION: "eu", RESONATE_LOCATION: "weur" },
    { name: SERVER, jurisdiction: "eu", locationHint: "weur" },
  ],
])("the server's object is addressed at the location that the deployment sets: %j", async (where, asked) => {
  const namespace = new FakeNamespace();
  await fetchFrom(withLocation(namespace, where))("http://resonate/");
  expect(namespace.asked).toEqual([asked]);
});
