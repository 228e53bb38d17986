/** This Worker's own variables, which the container does not get. */
const OWN = new Set(["INSTANCES"]);

/** The environment of the container: all text variables and secrets of its Worker. */
export function passedOn(env: object): Record<string, string> {
  const texts = Object.entries(env).filter(([name, value]) => typeof value === "string" && !OWN.has(name));
  // By default the account's own Resonate server: see `outboundByHost`.
  return { RESONATE_URL: "http://resonate", ...Object.fromEntries(texts) };
}
