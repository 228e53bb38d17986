/** No caller can read another caller's files, in any form of their address. */
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bearerBindings } from "../auth/support.ts";
import { rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";

const CALLERS = Array.from({ length: 10 }, (_, n) => `caller${n}`);
const FILES_OF_CALLER = 100;
const tokenOf = (caller: string) => `static-token-of-${caller}`;
const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };
const PUBLIC_URL = "https://jobs.example";

let folder: string;
let stack: Stack;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "files-"));
  const env = { FILES_URL: folder, ENCRYPTION_KEYS: randomBytes(32).toString("base64") };
  const tokens = bearerBindings(Object.fromEntries(CALLERS.map((caller) => [caller, tokenOf(caller)])));
  const more = { VIEW_KEY: "v".repeat(32), PUBLIC_URL, ALLOWED_HOSTS: "127.0.0.1,jobs.example" };
  stack = await startStack({ programs, env, bindings: { ...env, ...tokens, ...more } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** The content of a file, which no other file has. */
const secretOf = (caller: string, n: number) => `only ${caller} reads this, in file ${n}`;
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const ask = (caller: string, method: string, params: object) =>
  rpc(stack.url, method, params, { capabilities: {}, token: tokenOf(caller) });
const read = (caller: string, uri: string) => ask(caller, "resources/read", { uri });

/** The URIs of a caller's files, and the address of the first. */
async function filesOf(caller: string): Promise<{ uris: string[]; address: string }> {
  const texts = Array.from({ length: FILES_OF_CALLER }, (_, n) => secretOf(caller, n));
  const { result } = await ask(caller, "tools/call", { name: "make_many", arguments: { name: "many", texts } });
  const [address = ""] = /https:\S+\/files\/\S+/.exec(JSON.stringify(result.content)) ?? [];
  return { uris: result.structuredContent.result.uris, address: address.replaceAll('"', "") };
}

async function inTurns<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  const left = all.values();
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      for (const each of left) await work(each);
    }),
  );
}

/** The forms of address that an attacker with full knowledge of a file may try. */
function formsOf(uri: string, address: string): string[] {
  const [, job = "", id = "", name = ""] = /^job:\/\/([^/]+)\/files\/([^/]+)\/([^/]+)$/.exec(uri) ?? [];
  const owner = [CALLERS[0], "caller%30", sha256("caller0"), sha256(tokenOf("caller0")).slice(0, 16)];
  const base = createHash("sha1").update(`${stack.namespace}${job}`).digest("hex");
  const sealed = String(address.split("/").at(-1));
  return [
    ...[uri, `${uri}/`, `${uri}?`, `${uri}#`, ` ${uri} `, `${uri}%00`, `${uri}?caller=caller0`],
    ...[`JOB://${uri.slice(6)}`, uri.replace("job://", "job:"), uri.replace("job://", "job:///"), uri.slice(6)],
    ...[encodeURIComponent(uri), encodeURI(encodeURI(uri)), uri.replaceAll("/", "\\"), uri.replace("files", "FILES")],
    ...owner.map((each) => `job://${each}${job}/files/${id}/${name}`),
    ...owner.map((each) => `job://${each}/${job}/files/${id}/${name}`),
    ...[
      `job://${encodeURIComponent(stack.namespace)}${job}/files/${id}/${name}`,
      `job://../${job}/files/${id}/${name}`,
    ],
    ...[`job://${job}~1/files/${id}/${name}`, `job://${job}/files/../${id}/${name}`, `job://${job}/files/${id}`],
    ...[`job://make_many_none/files/${id}/${name}`, `job://${job}/files/${id}/other`, `job://${job}?offset=0`],
    ...[`job://${job}`, `job://caller0@${job}/files/${id}/${name}`, `${base}/${id}`, `${base}/${id}.json`],
    ...[`file://${folder}/${base}/${id}`, join(folder, base, id), `/files/${id}`, `/files/${encodeURIComponent(uri)}`],
    ...[`${PUBLIC_URL}/files/${sealed.slice(0, -4)}AAAA`, `/files/${sealed.slice(1)}`, `/files/${sealed}/../${id}`],
  ];
}

test("each of 1,000 files of ten callers can be read by its own caller only, and by no other in 40 forms of address", async () => {
  const all = await Promise.all(CALLERS.map(async (caller) => ({ caller, ...(await filesOf(caller)) })));
  const files = all.flatMap(({ caller, uris }) => uris.map((uri, n) => ({ caller, uri, n })));
  expect(files).toHaveLength(1_000);
  // All jobs have one name, so that a caller's own file has nearly the address of another's.
  await inTurns(files, async ({ caller, uri, n }) => {
    const own = await read(caller, uri);
    expect(own.result.contents[0].text).toBe(secretOf(caller, n));
    const other = CALLERS[(CALLERS.indexOf(caller) + 1 + (n % 9)) % 10] as string;
    const { result, error } = await read(other, uri);
    expect(JSON.stringify(result ?? error)).not.toContain(`only ${caller} `);
  });

  const [{ uris: [uri = ""], address } = { uris: [], address: "" }] = all;
  const forms = formsOf(uri, address);
  expect(new Set(forms).size).toBeGreaterThanOrEqual(40);
  const [thief = ""] = CALLERS.slice(1);
  const isSecret = (given: unknown) =>
    /only caller0 /.test(String(given)) || String(given).includes(sha256(secretOf("caller0", 0)));
  await inTurns([...forms.entries()], async ([n, form]) => {
    const asResource = await read(thief, form);
    const asInput = await ask(thief, "tools/call", {
      name: "take_file",
      arguments: { name: `theft ${n}`, file: form },
    });
    const asJob = await ask(thief, "tools/call", { name: "probe_status", arguments: { job_names: [form] } });
    const at = /^https:/.test(form)
      ? form.replace(PUBLIC_URL, stack.origin)
      : `${stack.origin}/${form.replace(/^\//, "")}`;
    const asAddress = await fetch(at, { headers: { authorization: `Bearer ${tokenOf(thief)}` } });
    for (const given of [
      JSON.stringify(asResource),
      JSON.stringify(asInput),
      JSON.stringify(asJob),
      await asAddress.text(),
    ])
      expect(isSecret(given), `${form}: ${given}`).toBe(false);
  });
  // The refused file does exist, and the address that its owner may pass on works.
  const given = await fetch(address.replace(PUBLIC_URL, stack.origin));
  expect(await given.text()).toBe(secretOf("caller0", 0));
}, 240_000);
