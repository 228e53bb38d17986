import { isSameSecret, mayBeToken, sha256Of } from "../../core/resonate/index.ts";

/** A token as configuration lists it: the name of its holder (default: `operator`), and its SHA-256 in hexadecimal. */
interface ListedToken {
  name?: unknown;
  sha256?: unknown;
}

const utf8 = new TextEncoder();

/** The name that belongs to the hash of a token. All are compared, so that the time taken does not reveal which one matched. */
export function holderOf(hash: string, tokens: readonly ListedToken[]): string | undefined {
  const expected = utf8.encode(hash);
  const [holder] = tokens.filter(({ sha256 }) => isSameSecret(utf8.encode(String(sha256).toLowerCase()), expected));
  return holder && String(holder.name ?? "operator");
}

/** The name that belongs to a token that a request shows. One that is too short belongs to nobody. */
export const holderOfToken = async (
  token: string | undefined,
  tokens: readonly ListedToken[],
): Promise<string | undefined> => (mayBeToken(token) ? holderOf(await sha256Of(token), tokens) : undefined);

/** The tokens of a variable that holds a JSON list of them. */
export function tokensIn(text: string | undefined): ListedToken[] {
  const entries: unknown = text ? JSON.parse(text) : [];
  return Array.isArray(entries) ? entries.flatMap((each) => each ?? []) : [];
}

/** The token that a request shows; undefined without one. */
export const bearerIn = (headers: Headers): string | undefined =>
  /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];
