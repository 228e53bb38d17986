/** `poll://uni@group/id` names one connection; `poll://any@group[/id]` any of a group, preferably the one with the id. */
interface PollAddress {
  cast: "uni" | "any";
  group: string;
  id: string;
}

/** The parts of a poll address; undefined for any other text. */
export function parsePollAddress(address: string): PollAddress | undefined {
  const url = URL.parse(address);
  if (url?.protocol !== "poll:" || url.hostname === "") return undefined;
  const { username: cast, hostname: group } = url;
  if (cast !== "uni" && cast !== "any") return undefined;
  return { cast, group, id: url.pathname.slice(1) };
}

/**
 * Whether the real server accepts `address`. The real server also pushes to webhooks, topics and scripts. This server accepts
 * their addresses, so that promises can be created, but sends nothing to them.
 */
export function isAddress(address: string): boolean {
  const url = URL.parse(address);
  switch (url?.protocol) {
    case "http:":
    case "https:":
    case "bash:":
      return true;
    case "gcps:":
      return url.hostname !== "" && url.pathname.length > 1;
    default:
      return parsePollAddress(address) !== undefined;
  }
}

/** Decodes a part of a URL's path; a malformed part stays as it is. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
