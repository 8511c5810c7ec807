// One simulated step: its times at each slowdown, and its collectives.

import {h, bytes, seconds, count, place} from "./dom.js";

const MOST_LISTED = 300;

export function stepView(step) {
  const times = [["step", "step_s"], ["compute", "compute_s"], ["communication", "communication_s"], ["exposed communication", "exposed_s"], ["perfect overlap", "bound_s"]];
  return h("table", {class: "data"}, h("caption", null, "Times of one step, by how much slower compute is beside a collective"),
           h("thead", null, h("tr", null, h("th", {scope: "col"}, h("span", {class: "unseen"}, "time")), step.at.map((one) => h("th", {scope: "col"}, `${Math.round(100 * one.slowdown)} % slower`)))),
           h("tbody", null, times.map(([title, key]) => h("tr", null, h("th", {scope: "row"}, title), step.at.map((one) => h("td", null, seconds(one[key]), key === "exposed_s" ? partOf(one.exposed_s, one.step_s) : null)))),
             step.memory_bytes === null ? null : h("tr", null, h("th", {scope: "row"}, "memory of one device"), h("td", {colspan: step.at.length}, bytes(step.memory_bytes)))));
}

export function exposedView(step) {
  const head = ["collective", "source", "tensor", "stream", "payload", "runs", "each", "total", ...step.at.map((one) => `exposed ${Math.round(100 * one.slowdown)} %`)];
  const row = (one) => h("tr", null, h("th", {scope: "row", title: one.name}, one.kind), h("td", {class: "words", title: one.source}, place(one.source)), h("td", {class: "words"}, one.tensor),
    h("td", {class: "words"}, one.stream), h("td", null, bytes(one.payload_bytes)), h("td", null, one.trips === null ? "unknown" : count(one.trips)), h("td", null, seconds(one.time_s)),
    h("td", null, one.trips === null ? "–" : seconds(one.communication_s)), one.exposed_s.map((time) => h("td", null, one.trips === null ? "–" : seconds(time), partOf(time, one.communication_s))));
  const left = step.collectives.length - MOST_LISTED;
  return [h("div", {class: "scrolled"}, h("table", {class: "data wide"}, h("caption", null, "Collectives, most exposed first"), h("thead", null, h("tr", null, head.map((text) => h("th", {scope: "col"}, text)))),
            h("tbody", null, step.collectives.slice(0, MOST_LISTED).map(row)))),
          left > 0 ? h("p", {class: "muted"}, `${count(left)} more, less exposed, are not listed.`) : null];
}

function partOf(part, whole) {
  return whole && part ? h("span", {class: "muted"}, ` ${(100 * part / whole).toFixed(1)} %`) : null;
}
