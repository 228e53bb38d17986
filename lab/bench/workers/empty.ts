/** The least a Worker can be: what workerd itself takes to start, and how much the load generator can ask of it. */
export default { fetch: () => new Response("ok") };

/** Bound in the configuration that this is bundled with; nothing here uses it. */
export class Listener {}
export class ResonateObject {}
export class RunnerObject {}
