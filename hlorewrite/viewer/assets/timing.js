// Where the run itself spent its time, and what each pass and rule did.

import {h, bytes, count} from "./dom.js";

export function timingView({steps, passes, rules}, showRule) {
  const total = steps.reduce((sum, [, time]) => sum + time, 0);
  const most = Math.max(...steps.map(([, time]) => time), 1e-9);
  return h("div", {class: "tables stacked"},
    h("table", {class: "data"}, h("caption", null, "Steps, in the order they ran"),
      h("thead", null, h("tr", null, ["step", "ms", "share", ""].map((text) => h("th", {scope: "col"}, text)))),
      h("tbody", null, steps.map(([step, time]) => h("tr", null, h("th", {scope: "row"}, h("code", null, step)), h("td", null, time.toFixed(1)),
        h("td", null, `${(total ? 100 * time / total : 0).toFixed(1)} %`),
        h("td", {class: "bar-cell", "aria-hidden": "true"}, h("span", {class: "time-bar", style: {width: `${100 * time / most}%`}}))))),
      h("tfoot", null, h("tr", null, h("th", {scope: "row"}, "total"), h("td", null, total.toFixed(1)), h("td"), h("td")))),
    passes.length ? h("table", {class: "data"}, h("caption", null, "What the module communicates after each pass"),
      h("thead", null, h("tr", null, ["pass", "rewrites", "collectives", "executed bytes"].map((text) => h("th", {scope: "col"}, text)))),
      h("tbody", null, passes.map((row) => h("tr", null, h("th", {scope: "row"}, h("code", null, row.pass ?? "?"), row.changed ? null : h("span", {class: "muted"}, " changed nothing")),
        h("td", null, count(row.rewrites)), h("td", null, count(row.collectives)), h("td", null, bytes(row.executed_bytes)))))) : null,
    rules.length ? h("table", {class: "data"}, h("caption", null, "Rules"),
      h("thead", null, h("tr", null, ["rule", "applied", "tried", "matched", "blocked", "unprofitable", "ms"].map((text) => h("th", {scope: "col"}, text)))),
      h("tbody", null, rules.map((row) => h("tr", null, h("th", {scope: "row"}, row.applied
        ? h("button", {type: "button", class: "link", onclick: () => showRule(row.rule)}, row.rule) : row.rule),
        ["applied", "tried", "matched", "blocked", "unprofitable"].map((name) => h("td", null, count(row[name]))),
        h("td", null, Number(row.milliseconds ?? 0).toFixed(1)))))) : null);
}
