// Every collective, what became of it, and the sentence that says why.

import {h, bytes, seconds, count, change, place, plural, prose, replaceChildren} from "./dom.js";
import {fateBadge} from "./fate.js";
import {line} from "./diff.js";
import {sourceLines} from "./source.js";
import {LongList} from "./list.js";

const ORDERS = {"most saved": (a, b) => b.saved - a.saved, "most bytes": (a, b) => b.most - a.most, "program order": null,
                "source line": (a, b) => a.shown.source.localeCompare(b.shown.source, "en", {numeric: true})};

export class Collectives {
  constructor(data, sources, openRewrites) {
    this.sources = sources;
    this.openRewrites = openRewrites;
    this.items = unpack(data);
    this.groups = data.groups;
    this.query = "";
    this.fate = "all";
    this.order = "most saved";
    this.list = new LongList({label: "Collectives", rowHeight: 58, render: (item) => this.row(item),
                              detail: (item) => this.detail(item), empty: "No collective fits."});
    this.tools = h("div", {class: "tools"});
    this.element = h("div", null, this.tools, this.list.element);
    this.update();
  }

  setQuery(query) {
    this.query = query;
    return this.update();
  }

  setFate(fate) {
    this.fate = fate;
    this.update();
  }

  update() {
    const found = this.items.filter((item) => (this.fate === "all" || item.fate === this.fate) && (!this.query || item.text.includes(this.query)));
    const order = ORDERS[this.order];
    if (order) found.sort((a, b) => order(a, b) || a.number - b.number);
    this.list.show(found);
    this.drawTools(found.length);
    return found.length;
  }

  drawTools(shown) {
    const fates = ["all", ...new Set(this.items.map((item) => item.fate))];
    replaceChildren(this.tools,
      h("div", {class: "chips", role: "group", "aria-label": "Show collectives that are"}, fates.map((fate) =>
        h("button", {type: "button", class: "chip", "aria-pressed": String(fate === this.fate), onclick: () => this.setFate(fate)}, fate))),
      h("label", {class: "order"}, "by ", h("select", {onchange: (event) => { this.order = event.target.value; this.update(); }},
        Object.keys(ORDERS).map((name) => h("option", {value: name, selected: name === this.order}, name)))),
      h("span", {class: "muted"}, shown === this.items.length ? `${count(shown)} in all` : `${count(shown)} of ${count(this.items.length)}`));
  }

  row({fate, shown, now, old, saved}) {
    const tensor = shown.argument || shown.type || shown.kind;
    const kind = [tensor === shown.kind ? null : shown.kind, tensor === shown.type ? null : shown.type, place(shown.source)];
    return [
      h("div", {class: "row-line"}, fateBadge(fate), h("span", {class: "row-kind row-tensor", title: tensor}, tensor),
        h("span", {class: "row-number"}, saved > 0 ? `saves ${bytes(saved)}` : saved < 0 ? `adds ${bytes(-saved)}` : "saves nothing")),
      h("div", {class: "row-line row-why"}, h("span", {class: "row-source", title: shown.source}, kind.filter(Boolean).join(" · ")),
        h("span", {class: "row-number"}, bytes(shown.payload)),
        h("span", {class: "row-number wide"}, `${times(old)} → ${now.length ? now.map(times).slice(0, 2).join(", ") : "0×"}`)),
    ];
  }

  detail({fate, old, now, why, shown, share}) {
    const rows = [["executions", old && executions(old), now.map(executions)], ["executed bytes", old && bytes(old.executed), now.map((each) => bytes(each.executed))],
                  ["in", old && (old.path || "outside loops"), now.map((each) => each.path || "outside loops")],
                  ["predicted, one call", old && seconds(old.time), now.map((each) => seconds(each.time))],
                  ["predicted, total", old && totalTime([old]), now.length ? [totalTime(now)] : []]];
    return [
      h("h4", null, fateBadge(fate), " ", shown.argument || shown.kind),
      h("p", {class: "detail-place"}, shown.argument ? `${shown.kind} of ` : null, shown.type ? h("code", null, shown.type) : null, shown.type ? " at " : null, h("code", null, shown.source)),
      sourceLines(this.sources, shown.source),
      why.map(reason),
      h("table", {class: "data compact"}, h("thead", null, h("tr", null, ["", "before", "after"].map((text) => h("th", {scope: "col"}, text)))),
        h("tbody", null, rows.filter(([, a, b]) => a !== "–" || b.some((text) => text !== "–")).map(([name, a, b]) => h("tr", null, h("th", {scope: "row"}, name),
          h("td", null, a ?? "–"), h("td", null, b.length ? several(b) : "–"))))),
      old && now.length ? h("p", {class: "muted"}, share > 1 ? `${plural(share, "collective")} before, together ${plural(now.length, "call")} now`
        : `executed bytes: ${change(old.executed, now.reduce((sum, each) => sum + each.executed, 0))}`) : null,
      h("p", null, `${shown.axes ? `Over ${shown.axes}: ` : ""}${groupsText(this.groups[shown.groups])}`),
      shown.text ? h("pre", {class: "op"}, line(shown.text)) : null,
      h("button", {type: "button", class: "link", onclick: () => this.openRewrites(shown.source)}, "Rewrites at this line"),
    ];
  }
}

function reason({kind, rule, sentence, culprit, culpritPlace}) {
  return h("p", {class: "reason"}, rule ? [fateBadge(kind), " ", h("span", {class: "muted"}, `${rule}: `)] : null, prose(sentence),
           culprit ? [" (", h("code", null, culprit), culpritPlace ? ` at ${culpritPlace}` : "", ")"] : null);
}

function several(texts) {
  const found = [...new Set(texts)];
  return found.length > 3 ? `${found.slice(0, 3).join(", ")} …` : found.join(", ");
}

function totalTime(rows) {
  return rows.some((each) => each.time === null) ? "–" : seconds(rows.reduce((sum, each) => sum + each.time * each.trips, 0));
}

function times(one) {
  return one ? `${count(one.trips)}${one.tripsKnown ? "" : "?"}×` : "0×";
}

function executions(one) {
  return `${count(one.trips)}${one.tripsKnown ? "" : " (a loop of unknown count, counted once)"}`;
}

export function groupsText(groups) {
  const shown = groups.slice(0, 6).map((group) => group.length > 16 ? `[${group.slice(0, 14).join(" ")} … ${group.at(-1)}]` : `[${group.join(" ")}]`);
  return `${count(groups.length)} ${groups.length === 1 ? "group" : "groups"} ${shown.join(" ")}${groups.length > 6 ? " …" : ""}`;
}

function unpack(data) {
  const text = (number) => data.strings[number];
  const sides = data.sides.map((rows) => rows.map(([kind, source, groups, axes, payload, trips, tripsKnown, time, path, op, argument, type]) => ({
    kind: text(kind), source: text(source), groups, axes: text(axes), payload, trips, tripsKnown, time,
    path: text(path), text: text(op), argument: text(argument), type: text(type), executed: payload * trips})));
  // What several have in common counts for each in proportion to what it sends.
  const together = new Map();
  for (const [, before, after] of data.fates) {
    if (before >= 0) together.set(String(after), (together.get(String(after)) ?? 0) + sides[0][before].payload);
  }
  return data.fates.map(([fate, before, after, share, reasons], number) => {
    const old = before < 0 ? null : sides[0][before];
    const now = after.map((each) => sides[1][each]);
    const why = reasons.map(([kind, rule, sentence, culprit, culpritPlace]) => ({kind: text(kind), rule: text(rule), sentence: text(sentence),
                                                                                culprit: text(culprit), culpritPlace: text(culpritPlace)}));
    const shown = old ?? now[0];
    const part = old && share > 1 ? old.payload / (together.get(String(after)) || 1) : 1;
    const size = now.reduce((sum, each) => sum + each.executed, 0) * part;
    const name = data.names[fate];
    return {number, fate: name, old, now, why, shown, share, most: Math.max(old?.executed ?? 0, size), saved: (old?.executed ?? 0) - size,
            text: [name, shown.kind, shown.argument, shown.type, shown.source, shown.axes, shown.path, shown.text, ...why.map((each) => `${each.kind} ${each.rule} ${each.sentence}`)].join("\n").toLowerCase()};
  });
}
