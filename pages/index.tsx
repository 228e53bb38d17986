/** The front page: the server, its health, its tools, and how to connect to it. */
import { type FC, render, useEffect, useState } from "hono/jsx/dom";
import { hostSetups } from "../core/tools/index.ts";
import { Workers } from "./front/workers.tsx";
import { JobTable } from "./jobs/table.tsx";
import { useJobs } from "./jobs/use-jobs.ts";
import { Copy, jobPath, Page, Part, Section, Trouble, useAbout, usePolling } from "./lib/components.tsx";
import { fieldsOf, SchemaForm, textOf, typeOf } from "./lib/form.tsx";
import { type About, type FormSchema, hasSignedIn, startJob, type ToolInfo, unavailability } from "./lib/server.ts";

const Front: FC = () => {
  const about = useAbout();
  useEffect(() => {
    if (about) document.title = about.title;
  }, [about]);
  const mayCall = about?.auth === "none" || hasSignedIn();
  return (
    <Page about={about}>
      {about && (
        <>
          <h1>{about.title}</h1>
          {about.description !== about.title && <p class="lead">{about.description}</p>}
          <p class="lead muted">
            An MCP server whose tools are durable: a call starts a job that survives crashes, and whose result stays
            available under its name in every later conversation.
          </p>
          <Health mayAsk={mayCall} />
          {about.unapproved?.map(({ server, lines }) => (
            <section class="notice lost" aria-label={`Held back of ${server}`} key={server}>
              {server} has changes that you have not accepted. They are held back until you type{" "}
              <code>durable-mcp-edge sync --accept</code>:
              <ul>
                {lines.map((line) => (
                  <li key={line}>
                    <code>{line}</code>
                  </li>
                ))}
              </ul>
            </section>
          ))}
          <Connect about={about} />
          {about.auth === "none" && <Recent />}
          <Tools tools={about.tools} mayStart={mayCall} />
          <footer class="muted">
            {about.name} {about.version}
            {about.websiteUrl !== undefined && (
              <>
                {" · "}
                <a href={about.websiteUrl} rel="noreferrer">
                  Web site
                </a>
              </>
            )}
          </footer>
        </>
      )}
    </Page>
  );
};

type HealthState = { isKnown: boolean; edge: boolean; reason?: string | undefined };

/** `mayAsk`: whether the viewer may read jobs; they show whether workers take jobs. */
const Health: FC<{ mayAsk: boolean }> = ({ mayAsk }) => {
  const [health, setHealth] = useState<HealthState>({ isKnown: false, edge: false });
  usePolling(
    () =>
      unavailability().then(
        (reason) => setHealth({ isKnown: true, edge: true, reason }),
        () => setHealth({ isKnown: true, edge: false, reason: "not known" }),
      ),
    10_000,
  );
  const { isKnown, edge, reason } = health;
  return (
    <ul class="health" aria-label="Health">
      <Part name="Edge" isKnown={isKnown} isWell={edge} text={edge ? "answers" : "does not answer"} />
      <Part name="Resonate server" isKnown={isKnown} isWell={reason === undefined} text={reason ?? "ready"} />
      {mayAsk && <Workers />}
    </ul>
  );
};

const Connect: FC<{ about: About }> = ({ about }) => {
  const { name, auth } = about;
  const url = about.url ?? new URL("/mcp", location.href).href;
  const isToken = auth === "bearer";
  const hosts = hostSetups({ name, url, token: isToken ? "YOUR-TOKEN" : undefined });
  const headers = isToken && { headers: { Authorization: "Bearer YOUR-TOKEN" } };
  const cursor = btoa(JSON.stringify({ url, ...headers }));
  const code = JSON.stringify({ name, type: "http", url, ...headers });
  return (
    <Section id="connect" title="Connect">
      <p class="line">
        <code>{url}</code>
        <Copy text={url} what="the MCP endpoint" />
      </p>
      <p class="actions">
        <a
          class="button main"
          href={`cursor://anysphere.cursor-deeplink/mcp/install?${new URLSearchParams({ name, config: cursor })}`}
        >
          Add to Cursor
        </a>
        <a class="button" href={`vscode:mcp/install?${encodeURIComponent(code)}`}>
          Add to VS Code
        </a>
      </p>
      {hosts.map(({ id, host, file, paste }, i) => (
        <details class="host" key={id} open={i === 0}>
          <summary>{host}</summary>
          {file !== undefined && <p class="muted">{file}</p>}
          <p class="line">
            <code>{paste}</code>
            <Copy text={paste} what={`the set-up of ${host}`} />
          </p>
        </details>
      ))}
      {isToken && (
        <p class="muted">
          YOUR-TOKEN is the token that the operator of this server gave you. Codex reads it from MCP_TOKEN.
        </p>
      )}
      {auth === "oauth" && <p class="muted">Your client signs you in at {about.issuer} when it connects.</p>}
    </Section>
  );
};

const Recent: FC = () => {
  const { jobs, ...reads } = useJobs({ limit: 5 });
  if (!jobs) return null;
  return (
    <Section id="recent" title="Latest jobs">
      <Trouble reads={reads} />
      {jobs.length === 0 ? (
        <p class="muted">None yet. Ask your client for one of the tools below.</p>
      ) : (
        <JobTable jobs={jobs} />
      )}
      <p>
        <a href="/jobs">All jobs</a>
      </p>
    </Section>
  );
};

const Tools: FC<{ tools: ToolInfo[]; mayStart: boolean }> = ({ tools, mayStart }) => (
  <Section id="tools" title="Tools">
    {tools.map((tool) => (
      <details class="tool" key={tool.name}>
        <summary>
          <code>{tool.name}</code> <span class="muted">{tool.title}</span>
        </summary>
        <p>{tool.description}</p>
        {tool.kind !== undefined && mayStart ? <Try tool={tool} /> : <Arguments schema={tool.inputSchema} />}
      </details>
    ))}
  </Section>
);

/** Starts a job of the tool, and opens its page. */
const Try: FC<{ tool: ToolInfo }> = ({ tool }) => (
  <SchemaForm
    id={`try-${tool.name}`}
    schema={tool.inputSchema}
    submit="Start"
    onSubmit={async (values) => {
      const name = await startJob(tool, values);
      location.href = name === undefined ? "/jobs" : jobPath(name);
    }}
  />
);

const Arguments: FC<{ schema: FormSchema }> = ({ schema }) => {
  const fields = fieldsOf(schema);
  if (fields.length === 0) return <p class="muted">It has no arguments.</p>;
  return (
    <dl class="arguments">
      {fields.map(([name, { description, minimum, maximum, ...field }]) => (
        <div key={name}>
          <dt>
            <code>{name}</code>
            {Array.isArray(schema.required) && schema.required.includes(name) ? "" : " (optional)"}
          </dt>
          <dd>
            {[
              textOf(typeOf(field)),
              typeof minimum === "number" && `from ${minimum}`,
              typeof maximum === "number" && `to ${maximum}`,
            ]
              .filter(Boolean)
              .join(" ")}
            {textOf(description) !== undefined && ` · ${description}`}
          </dd>
        </div>
      ))}
    </dl>
  );
};

render(<Front />, document.getElementById("page") as HTMLElement);
