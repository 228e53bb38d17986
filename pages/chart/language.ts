// Imported before uPlot, which takes the browser's language for its numbers as it is loaded, and fails with one that is no
// language tag: `en-US@posix` is what a browser has that was started without a locale.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en", configurable: true });
}
