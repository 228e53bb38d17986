/** The least a Worker can be: what workerd itself takes to start, and how much the load generator can ask of it. */
export default { fetch: () => new Response("ok") };
