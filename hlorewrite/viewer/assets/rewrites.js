// Every rewrite: what stood there, what stands there now, and what the rule says.

import {h, count, place, prose, replaceChildren} from "./dom.js";
import {sideBySide, line} from "./diff.js";
import {LongList} from "./list.js";
import {sourceLines} from "./source.js";

const PRINTED_REWRITES = 6;
const LONGEST_NAME = 26;

export class Rewrites {
  constructor(data, rules, sources) {
    this.strings = data.strings;
    this.sources = sources;
    this.rules = new Map(rules.map((rule) => [`${rule.rule}\n${rule.location}`, rule]));
    this.items = data.rows.map(([pass, rule, ruleLocation, location, before, after, milliseconds, argument, type], number) =>
      ({number, pass, rule, ruleLocation, location, before, after, milliseconds, argument, type}));
    this.lowered = null;
    this.query = "";
    this.rule = "";
    this.list = new LongList({label: "Rewrites", rowHeight: 44, height: 560, render: (item) => this.row(item),
                              detail: (item, position) => this.detail(item, position), empty: "No rewrite fits.",
                              printed: PRINTED_REWRITES, paper: (item) => sideBySide(this.text(item.before), this.text(item.after))});
    this.tools = h("div", {class: "tools"});
    this.element = h("div", {class: "rewrites"}, this.tools, this.list.element);
    this.update();
  }

  text(number) {
    return this.strings[number];
  }

  setQuery(query) {
    this.query = query;
    return this.update();
  }

  // Which texts hold the query is asked once for each text, and there are fewer texts than rewrites.
  matching() {
    this.lowered ??= this.strings.map((text) => text.toLowerCase());
    return this.lowered.map((text) => text.includes(this.query));
  }

  update() {
    const hits = this.query ? this.matching() : null;
    const found = this.items.filter((item) => (!this.rule || this.text(item.rule) === this.rule) &&
      (!hits || hits[item.rule] || hits[item.location] || hits[item.before] || hits[item.after] || hits[item.pass] || hits[item.argument]));
    this.list.show(found);
    this.drawTools(found.length);
    return found.length;
  }

  drawTools(shown) {
    const counts = new Map();
    for (const item of this.items) counts.set(item.rule, (counts.get(item.rule) ?? 0) + 1);
    const names = [...counts].map(([rule, number]) => [this.text(rule), number]).sort((a, b) => b[1] - a[1]);
    replaceChildren(this.tools,
      h("label", {class: "order"}, "of ", h("select", {"aria-label": "Rule", onchange: (event) => { this.rule = event.target.value; this.update(); }},
        h("option", {value: ""}, "all rules and passes"),
        names.map(([name, number]) => h("option", {value: name, selected: name === this.rule}, `${name} (${count(number)})`)))),
      h("span", {class: "pager"},
        h("button", {type: "button", class: "chip", onclick: () => this.list.step(-1)}, "Previous ", h("kbd", null, "K")),
        h("button", {type: "button", class: "chip", onclick: () => this.list.step(1)}, "Next ", h("kbd", null, "J"))),
      h("span", {class: "muted"}, shown === this.items.length ? `${count(shown)} in all` : `${count(shown)} of ${count(this.items.length)}`));
  }

  row(item) {
    const tensor = this.text(item.argument) || this.text(item.type);
    return [h("div", {class: "row-line"}, h("span", {class: "row-index"}, count(item.number + 1)), h("span", {class: "row-kind", title: tensor}, tensor ? ending(tensor) : this.text(item.rule))),
            h("div", {class: "row-why"}, [tensor ? this.text(item.rule) : null, place(this.text(item.location))].filter(Boolean).join(" · "))];
  }

  detail(item, position) {
    const rule = this.rules.get(`${this.text(item.rule)}\n${this.text(item.ruleLocation)}`);
    const pass = this.text(item.pass);
    return [
      h("h4", null, this.text(item.argument) || this.text(item.rule), h("span", {class: "muted"}, ` ${count(position + 1)} of ${count(this.list.items.length)}`)),
      h("p", {class: "detail-place"}, h("code", null, this.text(item.location) || "?"),
        item.argument && this.text(item.argument) ? h("span", {class: "muted"}, ` by ${this.text(item.rule)}`) : null,
        pass && pass !== this.text(item.rule) ? h("span", {class: "muted"}, ` in ${pass}`) : null,
        item.milliseconds ? h("span", {class: "muted"}, ` ${item.milliseconds.toFixed(2)} ms`) : null),
      sourceLines(this.sources, this.text(item.location)),
      sideBySide(this.text(item.before), this.text(item.after)),
      rule ? ruleText(rule) : h("p", {class: "muted"}, "The trace does not hold the text of this rule."),
    ];
  }

  showRule(name) {
    this.rule = name;
    this.update();
  }
}

// The end of a long name is what tells parameters apart.
function ending(name) {
  return name.length > LONGEST_NAME ? `…${name.slice(1 - LONGEST_NAME)}` : name;
}

function ruleText({rule, location, equation, docs, text}) {
  const title = location ? `The rule, ${location}` : `The pass ${rule}`;
  return h("div", {class: "rule"}, h("h5", null, title), equation ? h("p", {class: "equation"}, prose(equation)) : null,
           docs ? h("p", {class: "docs"}, prose(docs)) : null,
           text ? h("pre", {class: "op"}, text.split("\n").flatMap((each, i) => (i ? ["\n", line(each)] : [line(each)]))) : null);
}
