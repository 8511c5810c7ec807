// Two small texts side by side: lines aligned by their longest common subsequence, words marked inside changed lines.

import {h} from "./dom.js";

const MOST_CELLS = 4_000_000;

// [[left index or -1, right index or -1], ...] of two sequences.
export function align(left, right) {
  let start = 0;
  let [leftEnd, rightEnd] = [left.length, right.length];
  while (start < leftEnd && start < rightEnd && left[start] === right[start]) start += 1;
  while (leftEnd > start && rightEnd > start && left[leftEnd - 1] === right[rightEnd - 1]) { leftEnd -= 1; rightEnd -= 1; }
  const found = [];
  for (let i = 0; i < start; i += 1) found.push([i, i]);
  found.push(...middle(left, right, start, leftEnd, rightEnd));
  for (let i = leftEnd, j = rightEnd; i < left.length; i += 1, j += 1) found.push([i, j]);
  return found;
}

function middle(left, right, start, leftEnd, rightEnd) {
  const [rows, columns] = [leftEnd - start, rightEnd - start];
  const found = [];
  if (rows * columns > MOST_CELLS || rows === 0 || columns === 0) {
    for (let i = 0; i < rows; i += 1) found.push([start + i, -1]);
    for (let j = 0; j < columns; j += 1) found.push([-1, start + j]);
    return found;
  }
  const width = columns + 1;
  const length = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i -= 1) {
    for (let j = columns - 1; j >= 0; j -= 1) {
      length[i * width + j] = left[start + i] === right[start + j] ? length[(i + 1) * width + j + 1] + 1
        : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && left[start + i] === right[start + j]) { found.push([start + i, start + j]); i += 1; j += 1; }
    else if (j >= columns || (i < rows && length[(i + 1) * width + j] >= length[i * width + j + 1])) { found.push([start + i, -1]); i += 1; }
    else { found.push([-1, start + j]); j += 1; }
  }
  return found;
}

// Lines that went and lines that came in their place, as [left line or null, right line or null].
function pairs(left, right) {
  const found = [];
  let [gone, come] = [[], []];
  const flush = () => {
    for (let i = 0; i < Math.max(gone.length, come.length); i += 1) found.push([gone[i] ?? null, come[i] ?? null]);
    [gone, come] = [[], []];
  };
  for (const [i, j] of align(left, right)) {
    if (i >= 0 && j >= 0) { flush(); found.push([left[i], right[j]]); }
    else if (i >= 0) gone.push(left[i]);
    else come.push(right[j]);
  }
  flush();
  return found;
}

const TOKEN = /(\/\/.*$)|("(?:[^"\\]|\\.)*")|([%@#!$][\w.#-]+)|(\b(?:stablehlo|sdy|mpmd|func|arith)\.[\w.-]+)|(\b(?:tensor|memref|vector|tuple)<[^>]*>)|([A-Za-z_][\w.-]*)|(\s+)|([\d.]+(?:[eE][+-]?\d+)?)|(.)/g;
const CLASSES = ["comment", "string", "name", "op", "type", "word", "", "number", ""];

export function tokens(line) {
  return [...line.matchAll(TOKEN)].map((found) => ({text: found[0], kind: CLASSES[found.slice(1).findIndex((part) => part !== undefined)]}));
}

// A line of MLIR; marked(i) tells whether token i is not on the other side.
export function line(text, marked = () => false) {
  return tokens(text).map(({text: word, kind}, i) => {
    const classes = [kind && `tok-${kind}`, marked(i) && "tok-changed"].filter(Boolean).join(" ");
    return classes ? h("span", {class: classes}, word) : word;
  });
}

function changedLines(before, after) {
  const [left, right] = [tokens(before), tokens(after)];
  const same = align(left.map((token) => token.text), right.map((token) => token.text)).filter(([i, j]) => i >= 0 && j >= 0);
  // Lines that have little in common are better read as a whole.
  if (same.length < 0.5 * Math.max(left.length, right.length)) return [line(before), line(after)];
  const [kept, keptToo] = [new Set(same.map(([i]) => i)), new Set(same.map(([, j]) => j))];
  return [line(before, (i) => !kept.has(i) && left[i].text.trim()), line(after, (j) => !keptToo.has(j) && right[j].text.trim())];
}

function cell(side, kind, contents) {
  const sign = kind === "same" ? "" : side === "before" ? "−" : "+";
  return h("td", {class: `diff-${kind === "same" ? "same" : side}`},
           contents === null ? null : [h("span", {class: "diff-sign", "aria-hidden": "true"}, sign),
                                       sign && h("span", {class: "unseen"}, side === "before" ? "removed: " : "added: "), contents]);
}

// A table of two columns: before and after.
export function sideBySide(before, after) {
  const [left, right] = [before ? before.split("\n") : [], after ? after.split("\n") : []];
  const rows = pairs(left, right).map(([old, now]) => {
    if (old === now) return h("tr", null, cell("before", "same", line(old)), cell("after", "same", line(now)));
    if (old === null) return h("tr", null, h("td", {class: "diff-none"}), cell("after", "changed", line(now)));
    if (now === null) return h("tr", null, cell("before", "changed", line(old)), h("td", {class: "diff-none"}));
    const [gone, come] = changedLines(old, now);
    return h("tr", null, cell("before", "changed", gone), cell("after", "changed", come));
  });
  return h("table", {class: "diff"},
           h("thead", null, h("tr", null, h("th", {scope: "col"}, "before"), h("th", {scope: "col"}, "after"))),
           h("tbody", null, rows.length ? rows : h("tr", null, h("td", {colspan: "2", class: "muted"}, "no text was recorded"))));
}
