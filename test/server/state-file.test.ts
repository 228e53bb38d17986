import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Engine } from "../../server/engine/engine.ts";
import { Store } from "../../server/engine/store.ts";
import { openDatabase, StartError } from "../../server/node/database.ts";
import { NodeSql } from "../../server/node/node-sql.ts";
import { type Program, run } from "../../testing/stack/program.ts";
import { promise } from "../contract/server.ts";
import { programOf } from "../support/programs.ts";

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "resonate-"));
  file = join(dir, "resonate.db");
});
afterEach(() => rmSync(dir, { recursive: true }));

const head = { corrId: "1", version: "2026-04-01" };

/** Creates a state file with `count` promises. */
function fill(count: number): void {
  const store = new Store(new NodeSql(openDatabase(dir).db));
  const engine = new Engine(store);
  store.transaction(() => {
    for (let n = 0; n < count; n++) {
      engine.apply(Date.now(), { kind: "promise.create", head, data: promise(`p${n}`, { group: "g" }) });
    }
  });
  store.close();
}

/** Starts a server that must not start, and returns its output. */
async function refusal(...args: string[]): Promise<string> {
  await using program: Program = run(programOf("resonate"), { args: ["--port", "0", "--data", dir, ...args] });
  const { exitCode } = await program.exited;
  expect(exitCode).toBe(1);
  return program.output();
}

describe("an unusable state file is named and stays unchanged:", () => {
  test("cut off in the middle", async () => {
    fill(500);
    truncateSync(file, Math.floor(statSync(file).size / 2));
    const before = readFileSync(file);
    const output = await refusal();
    expect(output).toContain(`${file} is damaged`);
    expect(output).toMatch(/restore it from a backup, or move it/i);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test.each([
    ["cut off after its first page", () => truncateSync(file, 4096), "is damaged"],
    ["empty", () => truncateSync(file, 0), "is damaged"],
    ["overwritten in the middle", () => overwrite(file, 40_000, 30_000), "is damaged"],
    ["overwritten at its start", () => overwrite(file, 0, 200), "is damaged"],
    ["another program's database", () => otherDatabase(file), "is not a state file of this server"],
    [
      "of another schema version",
      () => sql(file, "PRAGMA user_version = 99"),
      "has schema version 99, this server needs 1. Another version of durable-mcp-edge wrote it: start that version again",
    ],
    ["missing while its log exists", () => loseDatabase(file), "is missing but its write-ahead log"],
  ])("%s", (_, damage, reason) => {
    fill(500);
    damage();
    const before = existsSync(file) && readFileSync(file);
    expect(() => openDatabase(dir)).toThrow(StartError);
    expect(() => openDatabase(dir)).toThrow(`${file} ${reason}`);
    expect(existsSync(file) && readFileSync(file)).toEqual(before);
  });

  test("large, so that the start does not read all of it, and cut off", () => {
    const { db } = openDatabase(dir);
    const insert = db.prepare("INSERT INTO promises VALUES (?, 'resolved', ?, '{}', '{}', NULL, 1, 1, 1, NULL)");
    for (let n = 0; n < 40; n++) insert.run(`p${n}`, "x".repeat(2_000_000));
    db.close();
    truncateSync(file, statSync(file).size - 4_096);
    expect(() => openDatabase(dir)).toThrow(`${file} is damaged`);
  });

  test("in a path that is not a directory", () => {
    writeFileSync(join(dir, "x"), "");
    expect(() => openDatabase(join(dir, "x"))).toThrow(`The data directory ${join(dir, "x")} cannot be used`);
  });
});

test("a second server on the same directory is refused, and the first one continues", async () => {
  const { db } = openDatabase(dir);
  expect(await refusal()).toContain(`The data directory ${dir} is in use by another Resonate server`);
  const store = new Store(new NodeSql(db));
  const create = { kind: "promise.create", head, data: promise("still") } as const;
  expect(store.transaction(() => new Engine(store).apply(Date.now(), create)).response.head.status).toBe(200);
  store.close();
});

test("a port that is taken is named", async () => {
  const other = createServer();
  const port = await new Promise<number>((resolve) => {
    other.listen(0, "127.0.0.1", () => resolve((other.address() as { port: number }).port));
  });
  expect(await refusal("--port", String(port))).toContain(`Port ${port} is taken`);
  other.close();
});

test.each([
  ["--port", "http"],
  ["--port", "70000"],
  ["--colour", "blue"],
])("%s %s is refused", async (...args) => {
  expect(await refusal(...args)).toContain(args[0]);
});

test("the file does not grow under repeated use of the same jobs", () => {
  const { db } = openDatabase(dir);
  const store = new Store(new NodeSql(db));
  const engine = new Engine(store);
  const pageCount = () => db.prepare("PRAGMA page_count").get()?.page_count as number;
  let now = Date.now();
  const apply = (kind: string, data: object) =>
    store.transaction(() => engine.apply(now, { kind, head, data } as never)).response.head.status;
  const use = (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      for (const id of ["a", "b", "c"]) {
        now += 1_000;
        apply("promise.create", {
          ...promise(id, { group: "g", timeoutAt: 9_000_000_000_000 }),
          param: { data: "x".repeat(1000) },
        });
        const { version } = store.task(id) ?? { version: 0 };
        expect(apply("task.acquire", { id, version, pid: "p", ttl: 60_000 })).toBe(200);
        expect(apply("task.heartbeat", { pid: "p", tasks: [{ id, version: version + 1 }] })).toBe(200);
        expect(apply("task.release", { id, version: version + 1 })).toBe(200);
      }
    }
  };
  use(20);
  const pages = pageCount();
  use(300);
  expect(pageCount()).toBe(pages);
  // SQLite writes the log back and reuses it after 1,000 pages, its default.
  expect(statSync(`${file}-wal`).size).toBeLessThan(1_100 * 4_120);
  store.close();
  expect(statSync(file).size).toBe(pages * 4096);
});

function overwrite(file: string, from: number, length: number): void {
  const bytes = readFileSync(file);
  bytes.fill(0xa5, from, from + length);
  writeFileSync(file, bytes);
}

function otherDatabase(file: string): void {
  rmSync(file);
  sql(file, "CREATE TABLE promises (id TEXT)");
}

function loseDatabase(file: string): void {
  rmSync(file);
  writeFileSync(`${file}-wal`, "what was not written back");
}

function sql(file: string, statement: string): void {
  const db = new DatabaseSync(file);
  db.exec(statement);
  db.close();
}
