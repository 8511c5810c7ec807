// The lines of the user's program around a place, where the trace holds them.

import {h} from "./dom.js";

// sources: {"file.py:31": [[30, "text"], ...]}; source: "file.py:31:7"
export function sourceLines(sources, source) {
  const key = source.replace(/:\d+$/, "");
  const rows = sources?.[key];
  if (!rows) return null;
  const named = Number(key.slice(key.lastIndexOf(":") + 1));
  return h("ol", {class: "source", "aria-label": `Lines around ${key}`}, rows.map(([number, text]) =>
    h("li", {class: number === named ? "named" : null, "aria-current": number === named ? "true" : null}, h("span", {class: "source-number"}, number), h("code", null, text || " "))));
}
