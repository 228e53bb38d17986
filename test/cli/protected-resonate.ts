import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type CryptoKey, errors, exportSPKI, generateKeyPair, jwtVerify, SignJWT } from "jose";
import { startChild } from "../../cli/process/child.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { freePort } from "../../testing/stack/port.ts";
import { waitForAnswer, watch } from "../../testing/stack/program.ts";
import { startResonate } from "../support/resonate.ts";

/** A Resonate server that requires tokens. */
export interface ProtectedResonate extends AsyncDisposable {
  readonly url: string;
  /** A token that the server accepts, unless `claims` make it invalid. */
  token(claims: { prefix?: string; role?: string; exp?: number }): Promise<string>;
}

/** Starts the standalone server if `RESONATE_BIN` names its program, otherwise the embedded one behind a guard with its rules. */
export async function startProtectedResonate(): Promise<ProtectedResonate> {
  const { privateKey, publicKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
  const token: ProtectedResonate["token"] = ({ exp = Math.floor(Date.now() / 1_000) + 90 * 86_400, ...claims }) =>
    new SignJWT({ ...claims, exp }).setProtectedHeader({ alg: "EdDSA" }).sign(privateKey);
  const program = process.env.RESONATE_BIN;
  const server = program ? await startStandalone(program, publicKey) : await startGuarded(publicKey);
  return { ...server, token };
}

async function startStandalone(program: string, publicKey: CryptoKey) {
  const dir = await mkdtemp(join(tmpdir(), "resonate-"));
  const pem = join(dir, "public.pem");
  await writeFile(pem, await exportSPKI(publicKey));
  const port = await freePort();
  const env = {
    RESONATE_AUTH__PUBLICKEY: pem,
    RESONATE_SERVER__PORT: `${port}`,
    RESONATE_SERVER__BIND: "127.0.0.1",
    RESONATE_STORAGE__SQLITE__PATH: join(dir, "resonate.db"),
    RESONATE_OBSERVABILITY__METRICS_PORT: "0",
  };
  const server = watch(startChild(program, ["serve"], { env, grace: 1_000 }));
  const url = `http://127.0.0.1:${port}`;
  await waitForAnswer(`${url}/ready`, server);
  const dispose = async () => {
    await server[Symbol.asyncDispose]();
    await rm(dir, { recursive: true });
  };
  return { url, [Symbol.asyncDispose]: dispose };
}

async function startGuarded(publicKey: CryptoKey) {
  const resonate = await startResonate({ own: true });

  /** 200, or the status with which the standalone server refuses. */
  async function verdict(token: string, kind: string | undefined, id: string | undefined): Promise<number> {
    try {
      const { payload } = await jwtVerify(token, publicKey, { algorithms: ["EdDSA"], requiredClaims: ["exp"] });
      // Every valid token may open a connection. Only a token for all namespaces may search.
      if (kind === undefined) return 200;
      const prefix = kind.endsWith(".search") ? "" : id;
      return prefix === undefined || prefix.startsWith(String(payload.prefix ?? "\0")) ? 200 : 403;
    } catch (error) {
      if (error instanceof errors.JOSEError) return 401;
      throw error;
    }
  }

  const guard = await serveHttp(async (req, res) => {
    const body = await text(req);
    const call = body === "" ? undefined : JSON.parse(body);
    const bearer = req.headers.authorization?.replace(/^Bearer /, "") ?? "";
    const status =
      req.url === "/ready"
        ? 200
        : await verdict(call?.head.auth ?? bearer, call?.kind, call?.data.id ?? call?.data.awaited);
    if (status !== 200) {
      const head = { corrId: call?.head.corrId, status, version: "2026-04-01" };
      const data = status === 401 ? "Unauthorized" : "Forbidden";
      return res.writeHead(status).end(JSON.stringify({ kind: call?.kind, head, data }));
    }
    const disconnect = new AbortController();
    res.once("close", () => disconnect.abort());
    const answer = await fetch(resonate.url + req.url, {
      method: req.method ?? "GET",
      signal: disconnect.signal,
      ...(body !== "" && { body, headers: { "Content-Type": "application/json" } }),
    });
    res.writeHead(answer.status, { "Content-Type": answer.headers.get("Content-Type") ?? "" }).flushHeaders();
    try {
      for await (const chunk of answer.body ?? []) res.write(chunk);
    } catch {
      // The client left.
    }
    return res.end();
  });
  const dispose = async () => {
    await guard[Symbol.asyncDispose]();
    await resonate[Symbol.asyncDispose]();
  };
  return { url: guard.url, [Symbol.asyncDispose]: dispose };
}
