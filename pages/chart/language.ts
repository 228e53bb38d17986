// Must be imported before uPlot, which formats numbers in the browser's language and fails to load if that is not a valid language
// tag: a browser that was started without a locale has `en-US@posix`.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en", configurable: true });
}
