/** The smallest Worker. It shows the start time of workerd itself, and the highest rate of the load generator. */
export default { fetch: () => new Response("ok") };

/** The shared configuration binds this class; it is unused here. */
export class Listener {}
export class CallerObject {}
export class ResonateObject {}
export class RunnerObject {}
