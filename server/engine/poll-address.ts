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
