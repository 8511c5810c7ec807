// A step of a pipeline: tasks and links of every mesh, and its memory, over time.

import {h, bytes, seconds, cssColour, showTip, hideTip, replaceChildren} from "./dom.js";
import {onTheme} from "./theme.js";

const LEFT = 96;
const AXIS = 26;
const HEIGHTS = {task: 24, link: 11, memory: 40, gap: 14};
const KINDS = {forward: "--gantt-forward", backward: "--gantt-backward", "input gradient": "--gantt-input", "weight gradient": "--gantt-weight",
               update: "--gantt-update", send: "--gantt-send", "all-reduce": "--gantt-reduce", kernel: "--gantt-forward", wait: "--gantt-weight", turns: "--gantt-send",
               "all-gather": "--gantt-input", "reduce-scatter": "--gantt-backward", "all-to-all": "--gantt-update", "collective-permute": "--gantt-send"};
const MOST_LINKS = 400;
const MOST_BESIDE = 4;

export class Gantt {
  constructor(data) {
    this.data = data;
    const {start, length} = data.spans;
    this.first = start.reduce((a, b) => Math.min(a, b), Infinity);
    this.last = start.reduce((most, at, i) => Math.max(most, at + length[i]), 0);
    this.view = [this.first, this.last];
    this.links = new Map(data.links);
    this.layout();
    this.canvas = h("canvas", {class: "gantt", tabindex: "0", role: "img", "aria-label": this.description(),
                               onmousemove: (event) => this.move(event), onmouseleave: () => { hideTip(); this.hover = -1; this.draw(false); },
                               onwheel: (event) => this.wheel(event), onmousedown: (event) => { this.drag = event.clientX; }, onkeydown: (event) => this.key(event)});
    addEventListener("mouseup", () => { this.drag = null; });
    this.hover = -1;
    this.element = h("div", null, this.facts(), this.legend(), this.buttons(), this.canvas);
    onTheme(() => this.draw());
    new ResizeObserver(() => this.draw(false)).observe(this.canvas);
  }

  // The top of every row, and of every mesh's memory.
  layout() {
    let y = AXIS;
    this.rows = [];
    this.memory = new Map();
    this.data.tracks.forEach((track, number) => {
      track.top = y;
      track.rows.forEach((_, i) => {
        const height = i === 0 ? HEIGHTS.task : HEIGHTS.link;
        this.rows.push({y, height});
        y += height + 2;
      });
      const curve = this.data.counters.find((each) => each.track === number);
      if (curve) {
        this.memory.set(number, {y, curve});
        y += HEIGHTS.memory + 2;
      }
      track.bottom = y;
      y += HEIGHTS.gap;
    });
    this.height = y;
    const sizes = this.data.counters.flatMap(({points}) => [points.reduce((a, [, size]) => Math.min(a, size), Infinity), points.reduce((a, [, size]) => Math.max(a, size), 0)]);
    this.mostMemory = Math.max(1, ...sizes);
    // What changes is worth seeing, so where most of it never does, the axis starts above zero and its labels say so.
    this.leastMemory = Math.min(this.mostMemory, ...sizes);
    if (this.leastMemory < this.mostMemory / 2) this.leastMemory = 0;
  }

  description() {
    return `Timeline of ${this.data.tracks.length} ${this.data.beside ? "streams" : "meshes"}, ${seconds((this.last - this.first) / 1e6)}; plus and minus zoom, arrow keys move`;
  }

  facts() {
    const found = this.data.simulation;
    const rows = found ? [["iteration", seconds(found.iteration_time_s)], ["bubble", `${(100 * (found.bubble_ratio ?? 0)).toFixed(1)} %`],
                          ["exposed communication", seconds(found.exposed_communication_s)], ["all communication", seconds(found.communication_s)],
                          ["schedule", `${found.schedule}, ${found.microbatches} micro-batches`], ["Comm-Shift", found.comm_shift ? "on" : "off"]]
      : [["length", seconds((this.last - this.first) / 1e6)], ["spans", String(this.data.spans.start.length)]];
    return h("dl", {class: "facts"}, rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
  }

  legend() {
    const kinds = [...new Set(this.data.spans.kind)].map((number) => this.data.strings[number]);
    return h("ul", {class: "legend"}, kinds.map((kind) => h("li", null, h("span", {class: "swatch", style: {"background-color": `var(${colourName(kind)})`}}), kind)),
             this.memory.size ? h("li", null, h("span", {class: "swatch swatch-memory"}),
               `${this.data.counters[0].name} of a device, ${this.leastMemory > 0 ? `drawn from ${bytes(this.leastMemory)}` : "drawn from 0"} to ${bytes(this.mostMemory)}`) : null);
  }

  buttons() {
    const middle = () => (this.view[0] + this.view[1]) / 2;
    return h("div", {class: "tools"}, [["Zoom in", () => this.zoom(0.5, middle())], ["Zoom out", () => this.zoom(2, middle())], ["All", () => this.show(this.first, this.last)]]
      .map(([name, action]) => h("button", {type: "button", class: "chip", onclick: action}, name)));
  }

  show(from, to) {
    const all = this.last - this.first;
    const length = Math.max(Math.min(to - from, all), all / 1e5);
    const start = Math.max(this.first, Math.min(from, this.last - length));
    this.view = [start, start + length];
    this.draw();
  }

  zoom(factor, at) {
    const [from, to] = this.view;
    this.show(at - (at - from) * factor, at + (to - at) * factor);
  }

  x(time) {
    return LEFT + (time - this.view[0]) / (this.view[1] - this.view[0]) * (this.width - LEFT);
  }

  time(x) {
    return this.view[0] + (x - LEFT) / (this.width - LEFT) * (this.view[1] - this.view[0]);
  }

  // What stands still is painted once for each view; the pointer's marks are drawn over a copy.
  draw(again = true) {
    const ratio = Math.max(1, devicePixelRatio || 1);
    this.width = this.canvas.clientWidth || 900;
    this.canvas.style.height = `${this.height}px`;
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (again || !this.picture || this.picture.width !== width) this.paint(width, height, ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.drawImage(this.picture, 0, 0);
    if (this.hover < 0) return;
    pen.scale(ratio, ratio);
    this.clipped(pen, () => { this.drawHover(pen); this.drawLinks(pen, this.linksOf(this.hover), "--ink"); });
  }

  paint(width, height, ratio) {
    this.picture = document.createElement("canvas");
    [this.picture.width, this.picture.height] = [width, height];
    const pen = this.picture.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    this.drawAxis(pen);
    this.clipped(pen, () => {
      this.drawMemory(pen);
      this.drawSpans(pen);
      if (this.links.size <= MOST_LINKS) this.drawLinks(pen, [...this.links], "--gantt-link");
    });
    this.drawNames(pen);
  }

  clipped(pen, action) {
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, this.width - LEFT, this.height);
    pen.clip();
    action();
    pen.restore();
  }

  drawAxis(pen) {
    const length = this.view[1] - this.view[0];
    const rough = length / Math.max(2, (this.width - LEFT) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    pen.fillStyle = cssColour("--muted");
    pen.strokeStyle = cssColour("--line");
    pen.textBaseline = "top";
    pen.textAlign = "center";
    for (let at = Math.ceil(this.view[0] / step) * step; at <= this.view[1]; at += step) {
      const x = this.x(at);
      pen.beginPath();
      pen.moveTo(x, AXIS - 6);
      pen.lineTo(x, this.height - HEIGHTS.gap);
      pen.stroke();
      if (x < this.width - 24) pen.fillText(seconds(at / 1e6), x, 4);
    }
  }

  // Neighbouring spans of one colour that are narrower than a pixel are drawn as one.
  drawSpans(pen) {
    const {row, start, length, kind, batch} = this.data.spans;
    const colours = this.data.strings.map((text) => cssColour(colourName(text)));
    const drawn = new Map();
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    for (let i = 0; i < start.length; i += 1) {
      if (start[i] > this.view[1] || start[i] + length[i] < this.view[0]) continue;
      const [from, to] = [this.x(start[i]), this.x(start[i] + length[i])];
      const key = row[i] * 64 + kind[i];
      if (to - from < 0.7 && drawn.get(key) >= from) continue;
      const {y, height} = this.rows[row[i]];
      const width = Math.max(to - from - (to - from > 4 ? 1 : 0), 0.7);
      drawn.set(key, from + 0.7);
      pen.fillStyle = colours[kind[i]];
      pen.fillRect(from, y, width, height);
      if (height === HEIGHTS.task && width > 16 && batch[i] >= 0) {
        pen.fillStyle = cssColour("--gantt-text");
        pen.fillText(String(batch[i]), Math.max(from, LEFT) + (Math.min(to, this.width) - Math.max(from, LEFT)) / 2, y + height / 2 + 1);
      }
    }
  }

  drawHover(pen) {
    const {row, start, length} = this.data.spans;
    const [from, to] = [this.x(start[this.hover]), this.x(start[this.hover] + length[this.hover])];
    const {y, height} = this.rows[row[this.hover]];
    pen.strokeStyle = cssColour("--ink");
    pen.lineWidth = 2;
    pen.strokeRect(from, y, Math.max(to - from - 1, 1), height);
  }

  linksOf(span) {
    return [...this.links].filter(([send, task]) => send === span || task === span);
  }

  drawLinks(pen, links, colour) {
    const {row, start, length} = this.data.spans;
    pen.strokeStyle = cssColour(colour);
    pen.lineWidth = colour === "--ink" ? 1.5 : 1;
    for (const [send, task] of links) {
      const [from, to] = [this.rows[row[send]], this.rows[row[task]]];
      const down = to.y > from.y;
      pen.beginPath();
      pen.moveTo(this.x(start[send] + length[send]), down ? from.y + from.height : from.y);
      pen.lineTo(this.x(Math.max(start[task], start[send] + length[send])), down ? to.y : to.y + to.height);
      pen.stroke();
    }
  }

  drawMemory(pen) {
    for (const {y, curve} of this.memory.values()) {
      const foot = this.leastMemory > 0 ? 6 : 0;
      const scale = (HEIGHTS.memory - 4 - foot) / Math.max(1, this.mostMemory - this.leastMemory);
      const base = y + HEIGHTS.memory;
      pen.fillStyle = cssColour("--gantt-memory");
      pen.strokeStyle = cssColour("--gantt-memory-line");
      pen.lineWidth = 1;
      pen.beginPath();
      let level = base;
      pen.moveTo(this.x(this.first), base);
      for (const [at, size] of curve.points) {
        pen.lineTo(this.x(at), level);
        level = base - foot - (size - this.leastMemory) * scale;
        pen.lineTo(this.x(at), level);
      }
      pen.lineTo(this.x(this.last), level);
      pen.stroke();
      pen.lineTo(this.x(this.last), base);
      pen.fill();
    }
  }

  drawNames(pen) {
    pen.textAlign = "right";
    for (const [number, track] of this.data.tracks.entries()) {
      pen.textBaseline = "middle";
      pen.fillStyle = cssColour("--ink");
      pen.fillText(track.name, LEFT - 10, track.top + HEIGHTS.task / 2 + 1);
      const memory = this.memory.get(number);
      if (!memory) continue;
      pen.fillStyle = cssColour("--muted");
      pen.fillText(bytes(memory.curve.points.reduce((most, [, size]) => Math.max(most, size), 0)), LEFT - 10, memory.y + HEIGHTS.memory / 2);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  move(event) {
    const [x, y] = this.at(event);
    if (this.drag !== null && this.drag !== undefined && event.buttons) {
      const shift = (this.drag - event.clientX) / (this.width - LEFT) * (this.view[1] - this.view[0]);
      this.drag = event.clientX;
      this.show(this.view[0] + shift, this.view[1] + shift);
      return;
    }
    const found = this.spanAt(this.time(x), y);
    if (found !== this.hover) { this.hover = found; this.draw(false); }
    const words = found >= 0 ? this.words(found) : this.memoryWords(this.time(x), y);
    if (words) showTip(event.clientX, event.clientY, words);
    else hideTip();
  }

  // Spans of a row do not overlap and come in the order of their start: the last one that has begun is the only candidate.
  spanAt(time, y) {
    const number = this.rows.findIndex((row) => y >= row.y && y <= row.y + row.height);
    if (number < 0) return -1;
    this.ofRow ??= this.spansOfRows();
    const {start, length} = this.data.spans;
    const spans = this.ofRow[number];
    let [low, high] = [0, spans.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[spans[middle]] <= time) low = middle + 1;
      else high = middle;
    }
    const found = spans[low - 1];
    return found !== undefined && time <= start[found] + length[found] ? found : -1;
  }

  spansOfRows() {
    const found = this.rows.map(() => []);
    this.data.spans.row.forEach((row, i) => found[row].push(i));
    return found;
  }

  words(i) {
    const {start, length, name, kind} = this.data.spans;
    const text = (number) => this.data.strings[number];
    return [h("strong", null, text(name[i])), h("span", {class: "tip-line"}, text(kind[i])),
            h("span", {class: "tip-line"}, `${seconds(start[i] / 1e6)} to ${seconds((start[i] + length[i]) / 1e6)}: ${seconds(length[i] / 1e6)}`),
            this.data.beside ? this.beside(i).map((line) => h("span", {class: "tip-line"}, line)) : null];
  }

  // What runs on the other streams meanwhile, longest first: what hides a collective, or what a wait waits for.
  beside(i) {
    const {row, start, length, name} = this.data.spans;
    const end = start[i] + length[i];
    this.ofRow ??= this.spansOfRows();
    const shared = new Map();
    this.ofRow.forEach((spans, number) => {
      if (number === row[i]) return;
      for (const other of spans) {
        const both = Math.min(end, start[other] + length[other]) - Math.max(start[i], start[other]);
        if (both > 0) shared.set(name[other], (shared.get(name[other]) ?? 0) + both);
      }
    });
    const found = [...shared].sort((a, b) => b[1] - a[1]);
    const lines = found.slice(0, MOST_BESIDE).map(([text, both]) => `beside ${this.data.strings[text]}: ${seconds(both / 1e6)}`);
    if (found.length > MOST_BESIDE) lines.push(`and ${found.length - MOST_BESIDE} more`);
    return lines.length ? lines : ["nothing runs concurrently with it"];
  }

  memoryWords(time, y) {
    const found = [...this.memory.values()].find((each) => y >= each.y && y <= each.y + HEIGHTS.memory);
    if (!found || time < this.first) return null;
    const point = found.curve.points.findLast(([at]) => at <= time);
    return [h("strong", null, bytes(point?.[1] ?? 0)), h("span", {class: "tip-line"}, `${found.curve.name} at ${seconds(time / 1e6)}`)];
  }

  wheel(event) {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    this.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, this.time(this.at(event)[0]));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [from, to] = this.view;
    const step = (to - from) / 8;
    const actions = {"+": () => this.zoom(0.5, (from + to) / 2), "=": () => this.zoom(0.5, (from + to) / 2), "-": () => this.zoom(2, (from + to) / 2),
                     0: () => this.show(this.first, this.last), ArrowLeft: () => this.show(from - step, to - step), ArrowRight: () => this.show(from + step, to + step)};
    if (!actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }
}

function colourName(kind) {
  return KINDS[kind] ?? "--gantt-other";
}
