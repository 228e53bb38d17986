import type { FC } from "hono/jsx/dom";
import { isFile, sizeInWords } from "../../core/author/index.ts";

/** The largest number of entries of a list or an object, and of characters of a text, that are shown. */
const MAX_ENTRIES = 100;
const MAX_TEXT_CHARACTERS = 5_000;

/** JSON as a readable tree. */
export const Tree: FC<{ value: unknown; depth?: number }> = ({ value, depth = 0 }) => {
  if (typeof value !== "object" || value === null) return <Leaf value={value} />;
  // The page shows the content of files beside the result.
  if (isFile(value)) return <Leaf value={`${value.name}, ${value.mimeType}, ${sizeInWords(value.size)}`} />;
  const entries = Object.entries(value);
  if (entries.length === 0) return <span class="muted">{Array.isArray(value) ? "an empty list" : "nothing"}</span>;
  if (
    Array.isArray(value) &&
    value.every((item) => typeof item !== "object" || item === null) &&
    value.length <= MAX_ENTRIES
  ) {
    return <code class="leaf">{value.map((item) => JSON.stringify(item)).join(", ")}</code>;
  }
  return (
    <dl class="tree">
      {entries.slice(0, MAX_ENTRIES).map(([key, item]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>{depth < 6 ? <Branch item={item} depth={depth} /> : <Leaf value={JSON.stringify(item)} />}</dd>
        </div>
      ))}
      {entries.length > MAX_ENTRIES && (
        <div class="muted">and {entries.length - MAX_ENTRIES} more: the JSON has all</div>
      )}
    </dl>
  );
};

const Branch: FC<{ item: unknown; depth: number }> = ({ item, depth }) => {
  const count = typeof item === "object" && item !== null ? Object.keys(item).length : 0;
  if (count <= 8 || depth < 1) return <Tree value={item} depth={depth + 1} />;
  return (
    <details>
      <summary>{count} entries</summary>
      <Tree value={item} depth={depth + 1} />
    </details>
  );
};

const Leaf: FC<{ value: unknown }> = ({ value }) => {
  const text = typeof value === "string" ? value : String(JSON.stringify(value) ?? "nothing");
  return (
    <span class="leaf">{text.length > MAX_TEXT_CHARACTERS ? `${text.slice(0, MAX_TEXT_CHARACTERS)} …` : text}</span>
  );
};
