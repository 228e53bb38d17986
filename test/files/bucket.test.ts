/** A job whose files are in a store that speaks S3, at `S3_URL` and its keys: for example moto's. */
import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { s3Of } from "../../core/store/files/s3.ts";
import { callerAt } from "../auth/support.ts";
import { rpc } from "../support/rpc.ts";
import { startStack } from "../support/stack.ts";
import { madeOf } from "./fixture/runs.ts";

const { S3_URL = "", S3_KEY_ID = "", S3_SECRET = "" } = process.env;
const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };
const PUBLIC_URL = "https://jobs.example";

test.skipIf(S3_URL === "")(
  "a job's file of several parts comes and goes with its job",
  async () => {
    const at = { FILES_URL: `${S3_URL}/files-test/jobs`, FILES_KEY_ID: S3_KEY_ID, FILES_SECRET: S3_SECRET };
    const env = { ...at, ENCRYPTION_KEYS: randomBytes(32).toString("base64") };
    const more = { VIEW_KEY: "v".repeat(32), PUBLIC_URL, ALLOWED_HOSTS: "127.0.0.1,jobs.example" };
    await using stack = await startStack({ programs, env, bindings: { ...env, ...more } });
    const kept = async () => (await Array.fromAsync(s3Of(at).list(""))).map(({ key }) => key);
    const before = await kept();
    const size = 20_000_000;
    const params = { name: "make_file", arguments: { name: "in a bucket", size } };
    const { result } = await rpc(stack.url, "tools/call", params, { capabilities: {} });
    const hash = createHash("sha256");
    for (const bytes of madeOf("in a bucket", size)) hash.update(bytes);
    const sha256 = hash.digest("hex");
    expect(result.structuredContent.result).toMatchObject({ read: sha256, file: { sha256, size } });
    const [address = ""] = /https:[^\s"]+\/files\/[^\s"]+/.exec(JSON.stringify(result.content)) ?? [];
    const arrived = await fetch(address.replace(PUBLIC_URL, stack.origin));
    const bytes = new Uint8Array(await arrived.arrayBuffer());
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(sha256);
    // The file and its description, and nothing of the draft.
    expect((await kept()).length - before.length).toBe(2);
    const caller = callerAt(stack.url, "");
    const { forgotten } = await caller.call("forget_jobs", { job_names: ["make_file_in a bucket"] });
    if (forgotten.length > 0) expect(await kept()).toEqual(before);
  },
  240_000,
);
