/** The files of a job. Images, sound, tables and text are shown, and every file can be downloaded. */
import { csvParseRows, tsvParseRows } from "d3-dsv";
import { type Child, type FC, useEffect, useState } from "hono/jsx/dom";
import { type FileReference, isText, sizeInWords } from "../../core/author/file.ts";
import { Chart, type LoadChart } from "../chart/drawn.tsx";
import { Scroll, Section, Table } from "../lib/components.tsx";
import { chartOf } from "./rows.ts";
import { Tree } from "./tree.tsx";

export type ShownFile = Pick<FileReference, "uri" | "name" | "mimeType" | "size">;

/** The text of a file, or its beginning. It can have fewer bytes than the file also if it is whole: a decoder omits some. */
interface FileText {
  text: string;
  isWhole: boolean;
}

/** How a page or a card gets files. */
export interface FileSource<File extends ShownFile> {
  /** The address from which an image or sound is loaded; undefined if it is too large. */
  address(file: File): Promise<string | undefined>;
  /** Undefined if it is too large. */
  text(file: File): Promise<FileText | undefined>;
  /** The element that downloads the file. */
  link(file: File): Child;
  loadChart: LoadChart;
}

/** The largest number of rows that a table shows. The file has all of them. */
const MOST_ROWS = 400;

interface FilesProps<File extends ShownFile> {
  files: readonly File[];
  source: FileSource<File>;
}

export function Files<File extends ShownFile>({ files, source }: FilesProps<File>) {
  return (
    <Section id="files" title="Files">
      {files.map((file) => (
        <figure class="file" key={file.uri}>
          <figcaption>
            {source.link(file)}{" "}
            <span class="muted quiet">
              {file.mimeType}, {sizeInWords(file.size)}
            </span>
          </figcaption>
          <Content key={file.uri} {...{ file, source: source as unknown as FileSource<ShownFile> }} />
        </figure>
      ))}
    </Section>
  );
}

const ROWS = new Map([
  ["text/csv", csvParseRows],
  ["text/tab-separated-values", tsvParseRows],
]);

interface ContentProps {
  file: ShownFile;
  source: FileSource<ShownFile>;
}

const Content: FC<ContentProps> = ({ file, source }) => {
  const [type = ""] = file.mimeType.toLowerCase().split(/[; ]/);
  const isMedium = /^(image|audio)\//.test(type);
  const [address, setAddress] = useState<string | undefined>(undefined);
  const [found, setFound] = useState<FileText | undefined>(undefined);
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    const lose = () => setLost(true);
    if (isMedium) source.address(file).then(setAddress, lose);
    else if (isText(type)) source.text(file).then(setFound, lose);
  }, []);
  if (isLost) return <p class="muted quiet">It cannot be shown now.</p>;
  if (address !== undefined) {
    if (type.startsWith("image/")) return <img src={address} alt={file.name} />;
    // biome-ignore lint/a11y/useMediaCaption: the file has no captions
    return <audio src={address} controls aria-label={file.name} />;
  }
  if (!found) return null;
  const { text, isWhole } = found;
  const rows = ROWS.get(type);
  const value = isWhole && /[/+]json$/.test(type) ? parsed(text) : undefined;
  return (
    <>
      {rows ? (
        // The last line of an incomplete text may be cut.
        <Rows name={file.name} rows={isWhole ? rows(text) : rows(text).slice(0, -1)} load={source.loadChart} />
      ) : value ? (
        <Tree value={value.json} />
      ) : (
        <Scroll label={file.name}>
          <pre>{text}</pre>
        </Scroll>
      )}
      {!isWhole && <p class="muted quiet">Only the beginning is shown. The file has all of it.</p>}
    </>
  );
};

function parsed(text: string): { json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const Rows: FC<{ name: string; rows: string[][]; load: LoadChart }> = ({ name, rows: [head = [], ...rows], load }) => {
  const [isDrawn, setDrawn] = useState(true);
  const chart = isDrawn ? chartOf(head, rows) : undefined;
  return (
    <>
      {chart && <Chart {...chart} load={load} onFailure={() => setDrawn(false)} />}
      <details open={!chart}>
        <summary>As a table</summary>
        <Scroll label={name}>
          <Table heads={head}>
            {rows.slice(0, MOST_ROWS).map((row, i) => (
              <tr key={i}>
                {row.map((cell, n) => (
                  <td key={n}>{cell}</td>
                ))}
              </tr>
            ))}
          </Table>
        </Scroll>
        {rows.length > MOST_ROWS && <p class="muted quiet">{rows.length - MOST_ROWS} more lines are in the file.</p>}
      </details>
    </>
  );
};
