/** What is this Worker's own, and no concern of the container's. */
const OWN = new Set(["INSTANCES"]);

/** The environment of the container: every text variable and secret of the Worker that runs it. */
export function passedOn(env: object): Record<string, string> {
  const texts = Object.entries(env).filter(([name, value]) => typeof value === "string" && !OWN.has(name));
  // Without a server elsewhere it is the account's own: see `outboundByHost`.
  return { RESONATE_URL: "http://resonate", ...Object.fromEntries(texts) };
}
