// Where collectives live: the loops around them, before and after.

import {h, bytes, count, place} from "./dom.js";

export function nestView([before, after], choose) {
  const most = Math.max(1, ...[before, after].flatMap((side) => side?.held.map((row) => row[7]) ?? []));
  const panel = (title, side) => h("div", {class: "nest-side"}, h("h3", null, title), side ? program(side, most, choose) : h("p", {class: "muted"}, "not in the trace"));
  return h("div", {class: "nests"}, panel("Before", before), panel("After", after));
}

function program({nests, held, rest}, most, choose) {
  const inside = nests.map(() => []);
  const outside = [];
  held.forEach((row) => (row[0] < 0 ? outside : inside[row[0]]).push(row));
  const left = new Map(rest.map(([nest, ...amounts]) => [nest, amounts]));
  const children = nests.map(() => []);
  const roots = [];
  nests.forEach(([parent], number) => (parent < 0 ? roots : children[parent]).push(number));
  const region = (number) => {
    const [, op, source, trips, known] = nests[number];
    const what = op === "while" || op === "fragment" ? `${known ? count(trips) : "?"} ×` : "one of its branches";
    return h("li", null, h("div", {class: `nest nest-${op}`},
      h("p", {class: "nest-head"}, h("span", {class: "nest-op"}, op), h("span", {class: "nest-trips"}, what), h("code", {title: source}, place(source))),
      body(number, inside[number], children[number])));
  };
  const more = ([number, size]) => h("li", {class: "muted nest-more"}, `… and ${count(number)} more, ${bytes(size)}`);
  const body = (number, rows, inner) => rows.length || inner.length
    ? h("ul", {class: "nest-body"}, inner.map(region), rows.map((row) => heldRow(row, most, choose)), left.has(number) ? more(left.get(number)) : null)
    : h("p", {class: "muted"}, "no collective");
  return h("div", {class: "nest nest-program"}, h("p", {class: "nest-head"}, h("span", {class: "nest-op"}, "program")), body(-1, outside, roots));
}

function heldRow([, kind, source, axes, trips, number, payload, executed], most, choose) {
  const label = `${kind} at ${source}: ${count(number)} of together ${bytes(payload)}, executed ${count(trips)} times, ${bytes(executed)}`;
  return h("li", null, h("button", {type: "button", class: "held", "data-source": source, "aria-label": label, onclick: () => choose(source),
                                    onmouseenter: () => mark(source, true), onmouseleave: () => mark(source, false)},
    h("span", {class: "held-kind"}, kind, number > 1 ? h("span", {class: "muted"}, ` × ${count(number)}`) : null),
    h("span", {class: "held-place"}, place(source), axes ? h("span", {class: "muted"}, ` over ${axes}`) : null),
    h("span", {class: "held-size"}, `${bytes(payload)} × ${count(trips)}`, h("strong", null, ` = ${bytes(executed)}`)),
    h("span", {class: "held-bar", "aria-hidden": "true"}, h("span", {style: {width: `${Math.max(100 * executed / most, 0.4)}%`}}))));
}

function mark(source, on) {
  document.querySelectorAll(".held").forEach((row) => row.classList.toggle("held-marked", on && row.dataset.source === source));
}
