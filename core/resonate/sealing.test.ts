import { describe, expect, test } from "vitest";
import { decodeValue, encodeValue } from "./codec.ts";
import type { PromiseRecord } from "./connection/protocol.ts";
import { KEYS_PATTERN, Sealing } from "./sealing.ts";

const [first = "", second = ""] = ["a", "b"].map((letter) => Buffer.from(letter.repeat(32)).toString("base64"));

const create = (id: string, param: unknown) => ({
  id,
  timeoutAt: 1,
  param: encodeValue(param),
  tags: { owner: "ada" },
});

/** The promise that a server creates from a request. */
const stored = ({ id, param, tags }: ReturnType<typeof create>): PromiseRecord => ({
  id,
  param,
  tags,
  state: "pending",
  value: {},
  timeoutAt: 1,
  createdAt: 1,
});

describe("the content of a promise", () => {
  test("is unreadable at the server, and unchanged when it comes back", async () => {
    const sealing = new Sealing(first);
    const sent = await sealing.seal(create("job", { secret: "ünïcode" }));
    expect([sent.id, sent.tags]).toEqual(["job", { owner: "ada" }]);
    expect(sent.param.data).toMatch(/^sealed:/);
    expect(Buffer.from(sent.param.data.split(":")[2] ?? "", "base64").toString("latin1")).not.toContain("secret");
    expect(JSON.stringify(sent)).toContain(new Sealing().mark);
    const { promise } = await sealing.decode({ promise: stored(sent) });
    expect(promise.param).toEqual(encodeValue({ secret: "ünïcode" }));
    // The same content is encrypted to a different text each time.
    expect((await sealing.seal(create("job", { secret: "ünïcode" }))).param.data).not.toBe(sent.param.data);
  });

  test("is encrypted and decrypted wherever requests and answers have it", async () => {
    const sealing = new Sealing(first);
    const action = { kind: "promise.settle" as const, data: { id: "job", state: "resolved", value: encodeValue(7) } };
    const { action: sealed } = await sealing.seal({ id: "task", version: 1, action });
    expect(sealed.data.value.data).toMatch(/^sealed:/);
    const promise = { ...stored(create("job", undefined)), value: sealed.data.value };
    const answer = { preload: [promise], promises: [promise], action: { kind: "x", data: { promise } } };
    const opened = await sealing.decode(answer);
    const all = [...opened.preload, ...opened.promises, opened.action.data.promise];
    expect(all.map(({ value }) => decodeValue(value))).toEqual([7, 7, 7]);
    // Empty content stays empty.
    expect((await sealing.seal(create("job", undefined))).param.data).toBe("");
    expect(await sealing.decodeRecord(stored(create("job", undefined)))).toEqual(stored(create("job", undefined)));
  });

  test("is read with the key that encrypted it, also when there is a newer one, and with no other key", async () => {
    const old = stored(await new Sealing(first).seal(create("job", "old")));
    const both = new Sealing(`${second},${first}`);
    expect(decodeValue((await both.decodeRecord(old)).param)).toBe("old");
    const recent = stored(await both.seal(create("job", "new")));
    expect(decodeValue((await new Sealing(second).decodeRecord(recent)).param)).toBe("new");
    await expect(new Sealing(first).decodeRecord(recent)).rejects.toThrow("no key fits");
    await expect(new Sealing().decodeRecord(recent)).rejects.toThrow("no key fits");
    // It does not make a search fail.
    expect(await new Sealing(first).decode({ promises: [recent] })).toEqual({ promises: [{ ...recent, param: {} }] });
  });

  test("is not accepted unencrypted when there are keys", async () => {
    const clear = stored(create("job", 1));
    await expect(new Sealing(first).decodeRecord(clear)).rejects.toThrow("unencrypted");
    expect(await new Sealing(first).decode({ promises: [clear] })).toEqual({ promises: [{ ...clear, param: {} }] });
    expect(await new Sealing().decodeRecord(clear)).toEqual(clear);
  });

  test("is not accepted in the promise's other field", async () => {
    const sealing = new Sealing(first);
    const { param } = await sealing.seal(create("job", 1));
    await expect(sealing.decodeRecord({ ...stored(create("job", undefined)), value: param })).rejects.toThrow();
  });

  test("is not accepted in another promise", async () => {
    const sealing = new Sealing(first);
    const hers = await sealing.seal(create("hers", 1));
    await expect(sealing.decodeRecord(stored({ ...hers, id: "his" }))).rejects.toThrow();
  });
});

test("keys are 32 bytes in base64 or base64url", () => {
  const url = first.replaceAll("+", "-").replaceAll("/", "_").replace("=", "");
  expect([first, `${first},${second}`, url].every((keys) => KEYS_PATTERN.test(keys))).toBe(true);
  expect(
    ["", "short", `${first},short`, `${first},`, `${first} `, first.slice(4)].some((keys) => KEYS_PATTERN.test(keys)),
  ).toBe(false);
});
