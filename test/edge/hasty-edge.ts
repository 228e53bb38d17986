/** The product's edge, with timeouts of a minute and more shortened to a hundredth. */
const { timeout } = AbortSignal;
AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms < 60_000 ? ms : ms / 100);

export * from "../../functions/index.ts";
export { default } from "../../functions/index.ts";
