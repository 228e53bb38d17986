/** The files of a job. Images, sound, tables and text are shown, and every file can be downloaded. */
import { csvParseRows, tsvParseRows } from "d3-dsv";
import { type Child, type FC, useEffect, useState } from "hono/jsx/dom";
import { type FileReference, isText, sizeInWords } from "../../core/author/index.ts";
import { Chart, type LoadChart } from "../chart/frame.tsx";
import { Scroll, Section, Table } from "../lib/components.tsx";
import { chartOf } from "./rows.ts";
import { Tree } from "./tree.tsx";

export type FileSummary = Pick<FileReference, "uri" | "name" | "mimeType" | "size">;

/** The text of a file, or its beginning. It can have fewer bytes than the file also if it is complete: a decoder omits some. */
interface FileText {
  text: string;
  isComplete: boolean;
}

/** How a page or a card gets files. */
export interface FileSource<File extends FileSummary> {
  /** The address from which an image or sound is loaded; undefined if it is too large. */
  address(file: File): Promise<string | undefined>;
  /** Undefined if it is too large. */
  text(file: File): Promise<FileText | undefined>;
  /** The element that downloads the file. */
  link(file: File): Child;
  loadChart: LoadChart;
}

/** The largest number of rows that a table shows. The file has all of them. */
const MAX_TABLE_ROWS = 400;

interface FilesProps<File extends FileSummary> {
  files: readonly File[];
  source: FileSource<File>;
}

export function Files<File extends FileSummary>({ files, source }: FilesProps<File>) {
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
          <Content key={file.uri} file={file} source={source as unknown as FileSource<FileSummary>} />
        </figure>
      ))}
    </Section>
  );
}

const ROW_PARSERS = new Map([
  ["text/csv", csvParseRows],
  ["text/tab-separated-values", tsvParseRows],
]);

interface ContentProps {
  file: FileSummary;
  source: FileSource<FileSummary>;
}

const Content: FC<ContentProps> = ({ file, source }) => {
  const [type = ""] = file.mimeType.toLowerCase().split(/[; ]/);
  const isMedium = /^(image|audio)\//.test(type);
  const [address, setAddress] = useState<string | undefined>(undefined);
  const [fileText, setFileText] = useState<FileText | undefined>(undefined);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    const onFailure = () => setFailed(true);
    if (isMedium) source.address(file).then(setAddress, onFailure);
    else if (isText(type)) source.text(file).then(setFileText, onFailure);
  }, []);
  if (hasFailed) return <p class="muted quiet">It cannot be shown now.</p>;
  if (address !== undefined) {
    if (type.startsWith("image/")) return <img src={address} alt={file.name} />;
    // oxlint-disable-next-line jsx-a11y/media-has-caption -- the file has no captions
    return <audio src={address} controls aria-label={file.name} />;
  }
  if (!fileText) return null;
  const { text, isComplete } = fileText;
  const rows = ROW_PARSERS.get(type);
  const value = isComplete && /[/+]json$/.test(type) ? parseJson(text) : undefined;
  return (
    <>
      {rows ? (
        // The last line of an incomplete text may be cut.
        <Rows name={file.name} rows={isComplete ? rows(text) : rows(text).slice(0, -1)} load={source.loadChart} />
      ) : value ? (
        <Tree value={value.json} />
      ) : (
        <Scroll label={file.name}>
          <pre>{text}</pre>
        </Scroll>
      )}
      {!isComplete && <p class="muted quiet">Only the beginning is shown. The file has all of it.</p>}
    </>
  );
};

function parseJson(text: string): { json: unknown } | undefined {
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
            {rows.slice(0, MAX_TABLE_ROWS).map((row, i) => (
              <tr key={i}>
                {row.map((cell, n) => (
                  <td key={n}>{cell}</td>
                ))}
              </tr>
            ))}
          </Table>
        </Scroll>
        {rows.length > MAX_TABLE_ROWS && (
          <p class="muted quiet">{rows.length - MAX_TABLE_ROWS} more lines are in the file.</p>
        )}
      </details>
    </>
  );
};
