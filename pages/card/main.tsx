/** The entry point of a job's card, which runs in a frame of the chat's host. */
import type { McpUiHostContext } from "@modelcontextprotocol/ext-apps";
import { render, useEffect, useState } from "hono/jsx/dom";
import { Card } from "./card.tsx";
import { type CardState, Follower } from "./follow.ts";
import { Host } from "./host.ts";

const host = new Host();

/** Adopts the host's colors, fonts and insets. */
function applyStyle({ theme, styles, safeAreaInsets }: Partial<McpUiHostContext>): void {
  const { style } = document.documentElement;
  if (theme) style.colorScheme = theme;
  for (const [name, value] of Object.entries(styles?.variables ?? {})) if (value) style.setProperty(name, value);
  const fonts = document.getElementById("fonts");
  if (styles?.css?.fonts && fonts) fonts.textContent = styles.css.fonts;
  if (safeAreaInsets) {
    const { top, right, bottom, left } = safeAreaInsets;
    document.body.style.padding = `${top}px ${right}px ${bottom}px ${left}px`;
  }
}

let onChange: (state: CardState) => void = () => {};
const follower = new Follower(host, (state) => onChange(state));

function Root() {
  const [state, setState] = useState<CardState>({});
  const [title, setTitle] = useState<string | undefined>(undefined);
  useEffect(() => {
    onChange = setState;
    const adopt = (context: Partial<McpUiHostContext>) => {
      applyStyle(context);
      const { tool } = context.toolInfo ?? {};
      if (!tool) return;
      follower.tool = tool.name;
      setTitle(tool.title ?? tool.name);
    };
    host
      .connect({
        "ui/notifications/tool-input": (input) => follower.onCall(input.arguments),
        "ui/notifications/tool-result": (answer) => follower.onAnswer(answer),
        "ui/notifications/tool-cancelled": ({ reason }) => setState({ notice: reason ?? "The call was cancelled." }),
        "ui/notifications/host-context-changed": adopt,
      })
      .then(adopt)
      .catch((error: Error) => setState({ notice: error.message }));
  }, []);
  return <Card host={host} title={title} state={state} follower={follower} />;
}

render(<Root />, document.getElementById("card") as HTMLElement);
