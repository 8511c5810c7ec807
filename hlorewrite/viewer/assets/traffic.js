// Who sends how much to whom: two pictures on one logarithmic scale, and the groups under the pointer.

import {h, bytes, count, cssColour, showTip, hideTip, replaceChildren} from "./dom.js";
import {onTheme} from "./theme.js";

const SIZE = 400;
const MARGIN = 30;

export function trafficView(data) {
  const rows = Math.ceil(data.devices / data.step);
  const values = ["before", "after"].flatMap((side) => data[side].map(([, , size]) => size));
  if (!values.length) return h("p", {class: "muted"}, "No device sends anything to another.");
  const scale = {least: Math.min(...values.length < 50_000 ? values : [values.reduce((a, b) => Math.min(a, b))]), most: values.reduce((a, b) => Math.max(a, b), 0)};
  const reading = h("p", {class: "traffic-reading", "aria-live": "polite"}, "Point at a cell, or focus a picture and use the arrow keys.");
  const maps = ["before", "after"].map((side, index) => new HeatMap(side, index, data, rows, scale, reading));
  maps.forEach((map) => { map.others = maps; });
  return [h("div", {class: "heat-maps"}, maps.map((map) => map.element)), legend(scale), reading,
          h("p", {class: "muted"}, "Bytes from the device of a row to the device of a column in one run of the module. Reductions and gathers count as rings in the order of their groups: logical traffic, not the algorithm a library picks.",
            data.step > 1 ? ` ${data.step} neighbouring devices share a row.` : "")];
}

class HeatMap {
  constructor(side, index, data, rows, scale, reading) {
    Object.assign(this, {side, index, data, rows, scale, reading, cell: [0, 0], shown: false});
    this.values = new Map(data[side].map(([i, j, size]) => [i * rows + j, size]));
    const total = data[side].reduce((sum, [, , size]) => sum + size, 0);
    this.canvas = h("canvas", {class: "heat", tabindex: "0", role: "img",
                               "aria-label": `Traffic ${side}: ${bytes(total)} between ${count(data.devices)} devices; arrow keys read cells`,
                               onmousemove: (event) => this.point(event), onmouseleave: () => this.leave(), onblur: () => this.leave(), onkeydown: (event) => this.key(event)});
    this.element = h("figure", null, h("figcaption", null, h("strong", null, side === "before" ? "Before" : "After"), h("span", {class: "muted"}, ` ${bytes(total)} in total`)), this.canvas);
    onTheme(() => this.draw());
    this.draw();
  }

  draw() {
    const ratio = Math.max(1, devicePixelRatio || 1);
    const {canvas, rows} = this;
    [canvas.width, canvas.height] = [SIZE * ratio, SIZE * ratio];
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, SIZE, SIZE);
    const unit = (SIZE - MARGIN) / rows;
    const gap = unit > 6 ? 1 : 0;
    pen.fillStyle = cssColour("--heat-none");
    pen.fillRect(MARGIN, MARGIN, SIZE - MARGIN, SIZE - MARGIN);
    for (const [place, size] of this.values) {
      pen.fillStyle = heat(this.scale, size);
      pen.fillRect(MARGIN + (place % rows) * unit, MARGIN + Math.floor(place / rows) * unit, Math.max(unit - gap, 1), Math.max(unit - gap, 1));
    }
    this.drawLabels(pen, unit);
    if (this.shown) this.drawMark(pen, unit);
  }

  drawLabels(pen, unit) {
    pen.fillStyle = cssColour("--muted");
    pen.font = "11px system-ui, sans-serif";
    const every = [1, 2, 4, 8, 16, 32, 64].find((step) => step * unit >= 22) ?? 64;
    for (let i = 0; i < this.rows; i += every) {
      const middle = MARGIN + (i + 0.5) * unit;
      pen.textAlign = "center";
      pen.textBaseline = "bottom";
      pen.fillText(String(i * this.data.step), middle, MARGIN - 5);
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(String(i * this.data.step), MARGIN - 6, middle);
    }
  }

  // The cell, and on its row and column everyone who is in a group with both.
  drawMark(pen, unit) {
    const [row, column] = this.cell;
    pen.strokeStyle = cssColour("--ink");
    pen.lineWidth = 1.5;
    pen.strokeRect(MARGIN + column * unit, MARGIN + row * unit, Math.max(unit - 1, 3), Math.max(unit - 1, 3));
    pen.fillStyle = cssColour("--accent");
    const members = new Set(this.classes(row, column).flatMap(({group}) => group.map((device) => Math.floor(device / this.data.step))));
    for (const member of members) {
      pen.fillRect(MARGIN + member * unit + unit / 2 - 2, MARGIN - 4, 4, 3);
      pen.fillRect(MARGIN - 4, MARGIN + member * unit + unit / 2 - 2, 3, 4);
    }
  }

  // Collectives with a group that holds devices of both, and that group.
  classes(row, column) {
    const {step} = this.data;
    const holds = (group, place) => group.some((device) => Math.floor(device / step) === place);
    return this.data.classes.filter((each) => each.bytes[this.index] > 0).map((each) => ({...each, group: each.groups.find((group) => holds(group, row) && holds(group, column))}))
      .filter((each) => each.group);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const unit = (SIZE - MARGIN) / this.rows;
    const place = (offset, length) => Math.floor((offset / length * SIZE - MARGIN) / unit);
    const [column, row] = [place(event.clientX - box.left, box.width), place(event.clientY - box.top, box.height)];
    if (row < 0 || column < 0 || row >= this.rows || column >= this.rows) { this.leave(); return; }
    this.read(row, column);
    showTip(event.clientX, event.clientY, this.words(row, column));
  }

  key(event) {
    const steps = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const bound = (value) => Math.max(0, Math.min(this.rows - 1, value));
    this.read(bound(this.cell[0] + step[0]), bound(this.cell[1] + step[1]));
  }

  read(row, column) {
    this.cell = [row, column];
    for (const map of this.others) Object.assign(map, {cell: [row, column], shown: true});
    this.others.forEach((map) => map.draw());
    replaceChildren(this.reading, this.words(row, column));
  }

  leave() {
    hideTip();
    for (const map of this.others) map.shown = false;
    this.others.forEach((map) => map.draw());
  }

  words(row, column) {
    const {step} = this.data;
    const name = (place) => (step > 1 ? `devices ${place * step}–${Math.min(this.data.devices, (place + 1) * step) - 1}` : `device ${place}`);
    const [old, now] = this.others.map((map) => map.values.get(row * this.rows + column) ?? 0);
    const lines = this.classes(row, column).slice(0, 5).map(({kind, axes, group, bytes: size}) =>
      h("span", {class: "tip-line"}, `${kind}${axes.length ? ` over ${axes.join(", ")}` : ""}, group [${group.slice(0, 16).join(" ")}${group.length > 16 ? " …" : ""}], ${bytes(size[this.index])} executed`));
    return [h("strong", null, `${name(row)} → ${name(column)}: ${bytes(old)} before, ${bytes(now)} after. `), lines.length ? lines : h("span", {class: "tip-line"}, "no collective joins them")];
  }
}

function share({least, most}, size) {
  return most > least ? Math.log(size / least) / Math.log(most / least) : 1;
}

function heat(scale, size) {
  const t = share(scale, size);
  const mix = (from, to, part) => from.map((channel, i) => Math.round(channel + (to[i] - channel) * part));
  const stops = cssColour("--heat").split(",").map((stop) => stop.trim().split(/\s+/).map(Number));
  const at = t * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return `rgb(${mix(stops[low], stops[low + 1], at - low).join(" ")})`;
}

function legend(scale) {
  const bar = h("canvas", {width: "200", height: "10", class: "heat-legend-bar", "aria-hidden": "true"});
  const draw = () => {
    const pen = bar.getContext("2d");
    for (let x = 0; x < 200; x += 1) {
      pen.fillStyle = heat({least: 1, most: Math.E}, Math.exp(x / 199));
      pen.fillRect(x, 0, 1, 10);
    }
  };
  onTheme(draw);
  draw();
  return h("p", {class: "heat-legend"}, bytes(scale.least), bar, bytes(scale.most), h("span", {class: "muted"}, " logarithmic; blank is nothing"));
}
