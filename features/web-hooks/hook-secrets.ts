import { Sealing } from "../../core/resonate/index.ts";
import type { Subscription } from "./hook-table.ts";

/** The secrets that sign web hooks. They are stored encrypted if the deployment encrypts its state. */
export class HookSecrets {
  readonly #sealing: Sealing;

  constructor(encryptionKeys: string | undefined) {
    this.#sealing = new Sealing(encryptionKeys);
  }

  /** The secret of a subscription as it is stored. */
  async seal(id: string, secret: string): Promise<string> {
    if (!this.#sealing.encode) return secret;
    const { param } = await this.#sealing.seal({ id, param: { headers: {}, data: secret.slice("whsec_".length) } });
    return param.data;
  }

  /** @throws {Error} if no key of the deployment decrypts it */
  async open(id: string, stored: string): Promise<string> {
    if (stored.startsWith("whsec_")) return stored;
    const { param } = await this.#sealing.decodeRecord({ id, param: { data: stored }, value: {} } as never);
    return `whsec_${param.data}`;
  }

  /** The secrets that sign now: the current one, and for a while the previous one. */
  async of({ id, secret, old_secret, old_until }: Subscription): Promise<string[]> {
    const all = [secret, ...(old_secret !== null && old_until > Date.now() ? [old_secret] : [])];
    return Promise.all(all.map((one) => this.open(id, one)));
  }
}
