// What the run saves, as the command that ran said it: the answer, both steps on one axis of time, every way.

import {h, bytes, seconds, count, plural} from "./dom.js";

export function decisionView(decision) {
  const chosen = decision.rows.find((row) => row.name === decision.chosen);
  const compiled = decision.rows.filter((row) => row.calls !== null);
  const left = decision.rows.filter((row) => row.calls === null);
  return [
    decision.saving ? h("p", {class: "answer"}, decision.saving) : null,
    h("p", {class: "lead"}, `${decision.reason.slice(0, 1).toUpperCase()}${decision.reason.slice(1)}.`),
    timeAxis(decision.rows[0], chosen),
    waysTable(decision, compiled),
    left.length ? h("details", null, h("summary", null, `${plural(left.length, "more way")}, not compiled`),
                    h("ul", {class: "left"}, left.map((row) => h("li", null, `${row.name}: ${row.why}`)))) : null,
  ];
}

function timeAxis(alone, chosen) {
  const sides = [...new Set([alone, chosen])].filter((row) => row && row.step_s && row.exposed_s !== null);
  if (!sides.length || (chosen && !sides.includes(chosen))) return null;
  const longest = Math.max(...sides.map((row) => row.step_s));
  const part = (kind, time) => h("span", {class: `span-${kind}`, style: {width: `${100 * time / longest}%`}});
  return h("figure", {class: "axis"},
           sides.map((row) => h("div", null, h("span", {class: "axis-name"}, row.name),
                                h("span", {class: "axis-bar", "aria-hidden": "true"}, part("compute", row.step_s - row.exposed_s), part("exposed", row.exposed_s)),
                                h("span", {class: "muted"}, `${seconds(row.step_s)}, of which ${seconds(row.exposed_s)} exposed`))),
           h("figcaption", {class: "muted"}, h("span", {class: "axis-key span-compute"}), " compute, with communication beside it   ",
             h("span", {class: "axis-key span-exposed"}), " only communication"));
}

function waysTable(decision, rows) {
  const titles = ["step", "exposed", "calls", "executed", "temporaries", "memory", ""];
  const why = (row, at) => row.name === decision.chosen ? "compiled" : row.why || (at ? `no better than ${decision.chosen}` : "");
  return h("div", {class: "scrolled"}, h("table", {class: "data"}, h("caption", null, `For ${decision.devices}`),
    h("thead", null, h("tr", null, h("th", {scope: "col"}, h("span", {class: "unseen"}, "way")), titles.map((text) => h("th", {scope: "col"}, text)))),
    h("tbody", null, rows.map((row, at) => h("tr", {class: row.name === decision.chosen ? "chosen" : null}, h("th", {scope: "row"}, row.name),
      h("td", null, seconds(row.step_s)), h("td", null, seconds(row.exposed_s)), h("td", null, count(row.calls)), h("td", null, bytes(row.executed_bytes)),
      h("td", null, bytes(row.temp_bytes)), h("td", null, bytes(row.memory_bytes), row.fits ? null : ": does not fit"), h("td", {class: "words"}, why(row, at)))))));
}
