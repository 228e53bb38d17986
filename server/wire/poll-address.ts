/** Addresses of the protocol: where a task is dispatched and where the news of a settled promise goes. */

/** `poll://uni@group/id` names one connection; `poll://any@group[/id]` any of a group, that one if it is there. */
export interface PollAddress {
  cast: "uni" | "any";
  group: string;
  id: string;
}

/** The parts of a poll address; undefined if `address` is none. */
export function parsePollAddress(address: string): PollAddress | undefined {
  const url = URL.parse(address);
  if (url?.protocol !== "poll:" || url.hostname === "") return undefined;
  const { username: cast, hostname: group } = url;
  if (cast !== "uni" && cast !== "any") return undefined;
  return { cast, group, id: url.pathname.slice(1) };
}

/**
 * Whether the real server takes `address`. It also pushes to webhooks, topics and scripts; here such an address is
 * taken as well, so that a promise can be created, but nothing is ever sent to it.
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
