/** What the edge uses of the runtime's own module. */
declare module "cloudflare:workers" {
  /** What a Durable Object has to extend whose methods are called from elsewhere. */
  export const DurableObject: new (state: unknown, env: object) => object;
  /** What a method may return that is not copied: the caller gets a stub. Disposed with that, or with who had it. */
  export const RpcTarget: new () => object;
}
