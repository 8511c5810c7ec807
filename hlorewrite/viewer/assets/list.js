// A list of thousands of rows of one height, of which only those in sight exist; next to it, what is chosen.

import {h, append, replaceChildren, count} from "./dom.js";

const SPARE = 8;
const PRINTED = 40;

export class LongList {
  // rowHeight: pixels; render(item): contents of a row; detail(item, position): what is shown of the chosen one;
  // printed: how many rows are printed, paper(item): what is printed of one besides its row.
  constructor({label, rowHeight, render, detail, empty, height = 480, printed = PRINTED, paper = () => null}) {
    Object.assign(this, {rowHeight, render, detail, empty, height, printed, paper});
    this.items = [];
    this.chosen = -1;
    this.spacer = h("div", {class: "long-spacer"});
    this.box = h("div", {class: "long-list", tabindex: "0", role: "listbox", "aria-label": label,
                         onscroll: () => this.draw(), onkeydown: (event) => this.key(event)}, this.spacer);
    this.pane = h("div", {class: "detail", "aria-live": "polite"});
    this.element = h("div", {class: "split"}, this.box, this.pane);
    this.prefix = label.toLowerCase().replaceAll(/\W+/g, "-");
    addEventListener("beforeprint", () => this.drawForPrint());
    addEventListener("afterprint", () => this.draw(true));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  show(items) {
    this.items = items;
    this.box.style.height = `${Math.max(1, Math.min(this.height, items.length * this.rowHeight + 2))}px`;
    this.spacer.style.height = `${items.length * this.rowHeight}px`;
    this.box.scrollTop = 0;
    this.choose(items.length ? 0 : -1, false);
    this.draw(true);
  }

  draw(again = false) {
    const from = Math.max(0, Math.floor(this.box.scrollTop / this.rowHeight) - SPARE);
    const to = Math.min(this.items.length, from + Math.ceil((this.box.clientHeight || this.height) / this.rowHeight) + 2 * SPARE);
    if (!again && from === this.from && to === this.to) return;
    [this.from, this.to] = [from, to];
    replaceChildren(this.spacer, this.rows(from, to));
    this.markChosen();
  }

  rows(from, to) {
    return this.items.slice(from, to).map((item, offset) => {
      const number = from + offset;
      return h("div", {class: "long-row", role: "option", id: `${this.prefix}-${number}`, "data-number": number,
                       "aria-posinset": number + 1, "aria-setsize": this.items.length,
                       style: {top: `${number * this.rowHeight}px`, height: `${this.rowHeight}px`},
                       onclick: () => this.choose(number)}, this.render(item));
    });
  }

  // On paper there is no scrolling: the first rows, and how many more there are.
  drawForPrint() {
    this.from = null;
    const more = this.items.length - this.printed;
    const rows = this.rows(0, Math.min(this.items.length, this.printed));
    rows.forEach((row, number) => append(row, [this.paper(this.items[number])]));
    replaceChildren(this.spacer, rows,
                    more > 0 ? h("p", {class: "print-more"}, `… and ${count(more)} more, on the page itself`) : null);
  }

  choose(number, scroll = true) {
    this.chosen = number;
    if (number < 0) replaceChildren(this.pane, h("p", {class: "muted"}, this.empty));
    else replaceChildren(this.pane, this.detail(this.items[number], number));
    if (scroll && number >= 0) this.reveal(number);
    this.markChosen();
  }

  markChosen() {
    for (const row of this.spacer.children) {
      row.setAttribute("aria-selected", String(Number(row.dataset.number) === this.chosen));
    }
    if (this.chosen >= 0) this.box.setAttribute("aria-activedescendant", `${this.prefix}-${this.chosen}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  reveal(number) {
    const top = number * this.rowHeight;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.rowHeight > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + this.rowHeight - this.box.clientHeight;
    }
    this.draw();
  }

  step(by) {
    if (!this.items.length) return;
    this.choose(Math.max(0, Math.min(this.items.length - 1, this.chosen + by)));
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 1);
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.step(steps[event.key]);
  }
}
