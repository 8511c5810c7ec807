// What the run changed, in a few figures.

import {h, bytes, seconds, count, change, plural} from "./dom.js";
import {fateBadge} from "./fate.js";

export function summary(head, openFate) {
  const [before, after] = head.sides;
  const [memoryBefore, memoryAfter] = head.memory;
  const figures = [
    figure("Executed bytes", "of one device", before?.bytes, after?.bytes, bytes),
    figure("Predicted communication", head.topology ? `on ${head.topology}, one after the other` : "no topology was named",
           before?.time_s, after?.time_s, seconds, "name a cluster with --topology"),
    figure("Collective calls", "executed by one device", before?.calls, after?.calls, count),
    memoryBefore || memoryAfter ? figure("Memory", `of one device, compiled for ${(memoryAfter ?? memoryBefore).target}`, memoryBefore?.total, memoryAfter?.total, bytes) : null,
  ];
  const [stepBefore, stepAfter] = head.steps ?? [];
  const step = stepAfter ?? stepBefore;
  if (step) {
    const what = `simulated, compute beside a collective ${Math.round(100 * step.slowdown)} % slower`;
    figures.push(figure("Step", step.complete ? what : `${what}; at least`, stepBefore?.step_s, stepAfter?.step_s, seconds),
                 figure("Exposed communication", what, stepBefore?.exposed_s, stepAfter?.exposed_s, seconds));
  }
  const fates = Object.entries(head.fates);
  return [
    h("div", {class: "figures"}, figures),
    fates.length ? h("div", {class: "fates"}, h("h3", null, "What became of the collectives"), fateBar(fates, openFate)) : null,
    before && after ? h("div", {class: "tables"}, totals("by kind", before.by_kind, after.by_kind),
                        totals("by mesh axis", before.by_axis, after.by_axis)) : null,
    memoryBefore || memoryAfter ? memoryTable(memoryBefore, memoryAfter) : null,
  ];
}

function isKnown(value) {
  return value !== null && value !== undefined;
}

function figure(title, what, before, after, format, missing) {
  const known = [before, after].filter(isKnown);
  if (!known.length) {
    return h("div", {class: "figure"}, h("h3", null, title), h("p", {class: "figure-value muted"}, "not known"),
             h("p", {class: "figure-note"}, missing ?? what));
  }
  const most = Math.max(...known, 0);
  const bar = (side, value) => h("div", {class: `meter meter-${side}`, style: {width: `${most ? Math.max(100 * value / most, value ? 0.5 : 0) : 0}%`}});
  return h("div", {class: "figure"}, h("h3", null, title),
           known.length < 2 ? h("p", {class: "figure-value"}, h("strong", null, format(known[0])), h("span", {class: "figure-before"}, isKnown(after) ? "after" : "before"))
             : h("p", {class: "figure-value"}, h("span", {class: "figure-before"}, format(before)),
                 h("span", {class: "arrow", "aria-label": "to"}, "→"), h("strong", null, format(after))),
           known.length < 2 ? null : h("div", {class: "meters", "aria-hidden": "true"}, bar("before", before), bar("after", after)),
           h("p", {class: "figure-note"}, [change(before, after), what].filter(Boolean).join(" · ")));
}

function fateBar(fates, openFate) {
  const all = fates.reduce((sum, [, number]) => sum + number, 0);
  return h("div", null,
           h("div", {class: "fate-bar", "aria-hidden": "true"},
             fates.map(([fate, number]) => h("span", {class: `fate-${fate}`, style: {"flex-grow": number}}))),
           h("ul", {class: "fate-list"}, fates.map(([fate, number]) => h("li", null,
             h("button", {type: "button", class: "link", onclick: () => openFate(fate)}, fateBadge(fate), ` ${count(number)} of ${count(all)}`)))));
}

function totals(title, before, after) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const none = [0, 0, 0];
  return h("table", {class: "data"},
           h("caption", null, `Executed bytes ${title}`),
           h("thead", null, h("tr", null, h("th", {scope: "col"}, h("span", {class: "unseen"}, title)), [["calls", 2], ["bytes before", 1], ["after", 1], ["", 1]].map(([text, span]) => h("th", {scope: "col", colspan: span}, text)))),
           h("tbody", null, names.map((name) => {
             const [old, now] = [before[name] ?? none, after[name] ?? none];
             return h("tr", null, h("th", {scope: "row"}, name), h("td", {class: "tight", colspan: 2}, `${count(old[1])} → ${count(now[1])}`),
                      h("td", null, bytes(old[2])), h("td", null, bytes(now[2])), h("td", {class: "muted"}, change(old[2], now[2])));
           })));
}

function memoryTable(before, after) {
  const rows = [["arguments", "argument"], ["outputs", "output"], ["temporaries", "temp"], ["aliased", "alias"], ["total", "total"]];
  const sides = [["before", before], ["after", after]].filter(([, side]) => side);
  return h("table", {class: "data"}, h("caption", null, "Memory of one device, as XLA's compiler counts it"),
           h("thead", null, h("tr", null, ["", ...sides.map(([title]) => title), ""].map((text) => h("th", {scope: "col"}, text)))),
           h("tbody", null, rows.map(([name, key]) => h("tr", null, h("th", {scope: "row"}, name),
             sides.map(([, side]) => h("td", null, bytes(side[key]))), h("td", {class: "muted"}, change(before?.[key], after?.[key]))))));
}

export function runLine(head) {
  const {command, pipeline, hlorewrite} = head.run;
  const devices = head.sides[1]?.devices ?? head.sides[0]?.devices;
  return [pipeline ? h("code", null, pipeline) : command, devices ? plural(devices, "device") : null, head.topology,
          hlorewrite ? `hlorewrite ${hlorewrite}` : null].filter(Boolean).flatMap((part, i) => (i ? [" · ", part] : [part]));
}
