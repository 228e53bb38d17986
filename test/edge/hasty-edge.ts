/** The product's edge, for which a minute and more passes in a hundredth of the time. */
const { timeout } = AbortSignal;
AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms < 60_000 ? ms : ms / 100);

export * from "../../functions/index.ts";
export { default } from "../../functions/index.ts";
