import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { taskKeyIn } from "./data-directory.ts";

/** The key that seals task ids. It is kept in the data directory, if any, so that task ids stay valid after a restart. */
export async function taskKey(data: string | undefined): Promise<string> {
  const newKey = randomBytes(32).toString("hex");
  if (data === undefined) return newKey;
  const file = taskKeyIn(data);
  await mkdir(data, { recursive: true });
  await writeFile(file, newKey, { flag: "wx", mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const key = await readFile(file, "utf8");
  if (key.length === newKey.length) return key;
  throw new Error(
    `${file} is damaged. Delete it to continue with a new key; task ids handed out before are then void.`,
  );
}

/** Derives the view key from the task key if there is no authentication: then it seals no sessions or links, only callbacks. */
export function viewKey({ AUTH_MODE, VIEW_KEY }: NodeJS.ProcessEnv, { TASK_KEY }: { TASK_KEY: string }) {
  if (VIEW_KEY || (AUTH_MODE && AUTH_MODE !== "none")) return {};
  return { VIEW_KEY: createHash("sha256").update(`view ${TASK_KEY}`).digest("hex") };
}
