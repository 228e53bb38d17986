/** `keys`: creates the key pair of a Resonate server, and tokens for the edge and the worker of one deployment. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type CryptoKey, exportPKCS8, exportSPKI, generateKeyPair, importPKCS8, SignJWT } from "jose";
import { flag, option, optionOr, usageOf, WrongArguments } from "../arguments.ts";
import { print } from "../terminal/print.ts";

const OPTIONS = {
  namespace: option(
    "NAME/",
    `the prefix of all job names, to which the tokens are limited; NAME is also the name of the worker
group`,
  ),
  out: option("DIR", "the folder to write to; existing files are never overwritten"),
  days: optionOr("90", "N", "how long the tokens are valid (default 90)"),
  key: option(
    "FILE",
    `sign with this private key instead of a new one: to renew tokens before they expire, or to add
a deployment to the same Resonate server; writes no keys, and a task key only with --task-key`,
  ),
  encrypt: flag("also write ENCRYPTION_KEYS for both: edge and worker encrypt the content of jobs"),
  operator: flag(
    `also write operator.env: a token for the operator's commands, which may search and therefore opens
all namespaces of the server`,
  ),
  "task-key": flag("with --key: also create a task and a view key, for a new namespace"),
};

export const usage = usageOf(
  "--namespace NAME/ --out DIR [options]",
  `Writes the keys and tokens by which the parts of one deployment authenticate to one another:

  private.pem  signs tokens; store it as a secret, no server needs it
  public.pem   verifies tokens; the Resonate server needs it
  edge.env     secrets of the edge: its Resonate token, its task and view keys, the namespace, the worker group
  worker.env   environment of the worker: its Resonate token, the namespace, the worker group`,
  OPTIONS,
);

/** The only file that others may read. */
const PUBLIC_KEY_FILE = "public.pem";

/** EdDSA with Ed25519: the smallest keys that the Resonate server accepts. */
const ALGORITHM = "EdDSA";

/** @throws {WrongArguments} */
function parseOptions(args: string[]) {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { namespace, out } = values;
  if (!namespace || !out) throw new WrongArguments("--namespace and --out are needed.");
  // A token opens every id that begins with its namespace. The one final "/" keeps a namespace from being a prefix of another.
  if (!/^[\w.-]+\/$/.test(namespace)) {
    throw new WrongArguments(
      `--namespace must be letters, digits, ".", "_" or "-", and then one "/", not "${namespace}".`,
    );
  }
  if (namespace === "default/")
    throw new WrongArguments('--namespace must not be "default/": that worker group is reserved.');
  const days = Number(values.days);
  if (!(days > 0 && days <= 3650))
    throw new WrongArguments(`--days must be a number from 1 to 3650, not "${values.days}".`);
  return { ...values, namespace, out, days, hasTaskKey: values.key === undefined || values["task-key"] };
}

/**
 * Signs a token for the Resonate server, limited to ids that begin with `prefix`. An empty prefix opens all ids; the server
 * refuses a token without a prefix. `part` is its owner for the server's log, and grants no rights.
 */
function sign(key: CryptoKey, part: string, prefix: string, expires: Date): Promise<string> {
  return new SignJWT({ prefix, role: part })
    .setProtectedHeader({ alg: ALGORITHM, typ: "JWT" })
    .setSubject(part)
    .setIssuedAt()
    .setExpirationTime(expires)
    .sign(key);
}

/** The contents of the files, by their names. */
async function contentsOf(
  { namespace, key, hasTaskKey, operator, encrypt }: ReturnType<typeof parseOptions>,
  expires: Date,
): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  let signingKey: CryptoKey;
  if (key === undefined) {
    const pair = await generateKeyPair(ALGORITHM, { crv: "Ed25519", extractable: true });
    signingKey = pair.privateKey;
    files["private.pem"] = `${await exportPKCS8(pair.privateKey)}\n`;
    files[PUBLIC_KEY_FILE] = `${await exportSPKI(pair.publicKey)}\n`;
  } else {
    signingKey = await importPKCS8(await readFile(key, "utf8"), ALGORITHM).catch(() => {
      throw new Error(`${key} is not an Ed25519 private key in PEM (PKCS #8), such as this program writes.`);
    });
  }
  // Each namespace has its own worker group, so that workers are sent only jobs that their token opens.
  const encryption = encrypt ? { ENCRYPTION_KEYS: randomBytes(32).toString("base64") } : {};
  const common = { RESONATE_NAMESPACE: namespace, RESONATE_GROUP: namespace.slice(0, -1), ...encryption };
  const edge = await sign(signingKey, "edge", namespace, expires);
  const worker = await sign(signingKey, "worker", namespace, expires);
  const newSecret = () => randomBytes(32).toString("hex");
  const sealingKeys = hasTaskKey ? { TASK_KEY: newSecret(), VIEW_KEY: newSecret() } : {};
  files["edge.env"] = dotenv({ ...common, RESONATE_TOKEN: edge, ...sealingKeys });
  files["worker.env"] = dotenv({ ...common, RESONATE_TOKEN: worker });
  if (operator) {
    const RESONATE_TOKEN = await sign(signingKey, "operator", "", expires);
    files["operator.env"] = dotenv({ ...common, RESONATE_TOKEN });
  }
  return files;
}

const dotenv = (values: Record<string, string>) =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");

async function write(dir: string, files: Record<string, string>): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const existingFile = Object.keys(files).find((name) => existsSync(join(dir, name)));
  if (existingFile !== undefined)
    throw new Error(`${join(dir, existingFile)} is already there. Nothing was written; choose another --out.`);
  for (const [name, content] of Object.entries(files))
    await writeFile(join(dir, name), content, { flag: "wx", mode: name === PUBLIC_KEY_FILE ? 0o644 : 0o600 });
}

export async function run(args: string[]): Promise<void> {
  const options = parseOptions(args);
  const expires = new Date(Date.now() + options.days * 24 * 60 * 60 * 1000);
  const files = await contentsOf(options, expires);
  await write(options.out, files);
  print(`Tokens for the namespace ${options.namespace}, valid until ${expires.toISOString().slice(0, 10)}:`);
  for (const name of Object.keys(files)) print(`  ${join(options.out, name)}`);
}
