/** The environment of the container: all text variables and secrets of its Worker, except the Worker's own INSTANCES. */
export function passedOn(env: object): Record<string, string> {
  const texts = Object.entries(env).filter(([name, value]) => typeof value === "string" && name !== "INSTANCES");
  // By default the account's own Resonate server: see `outboundByHost`.
  return { RESONATE_URL: "http://resonate", ...Object.fromEntries(texts) };
}
