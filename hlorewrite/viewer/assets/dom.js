// Making elements, and writing numbers the way people read them.

// h("p", {class: "note", onclick: f}, "text", node, [nodes]) makes an element.
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([key, text]) => element.style.setProperty(key, text));
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function replaceChildren(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(size) {
  if (size === null || size === undefined) return "–";
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < UNITS.length - 1) { size /= 1024; unit += 1; }
  return `${unit === 0 ? Math.round(size) : size.toFixed(size < 10 ? 2 : 1)} ${UNITS[unit]}`;
}

export function seconds(time) {
  if (time === null || time === undefined) return "–";
  if (time === 0) return "0 s";
  for (const [unit, scale] of [["s", 1], ["ms", 1e3], ["µs", 1e6]]) {
    const shown = time * scale;
    if (Math.abs(shown) >= 1 || unit === "µs") return `${shown >= 100 ? shown.toFixed(0) : shown.toPrecision(3)} ${unit}`;
  }
  return "";
}

export function count(number) {
  return number === null || number === undefined ? "–" : Math.round(number).toLocaleString("en-US");
}

// "8.00× less", "the same", "1.50× more"
export function change(before, after) {
  if (before === null || after === null || before === undefined || after === undefined) return "";
  if (before === after) return "the same";
  if (before === 0) return "new";
  if (after === 0) return "none left";
  const ratio = before > after ? before / after : after / before;
  return `${ratio >= 100 ? count(ratio) : ratio.toFixed(2)}× ${before > after ? "less" : "more"}`;
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

// Text with ``code`` in it, as docstrings write it.
export function prose(text) {
  return text.split(/``?([^`]+)``?/).map((part, i) => (i % 2 ? h("code", null, part) : part));
}

// The last part of a path with its line: what is needed to recognise a place.
export function place(source) {
  if (source === "?") return "no source line";
  const cut = source.lastIndexOf("/");
  return cut < 0 ? source : source.slice(cut + 1);
}

export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const tip = () => document.getElementById("tip");

export function showTip(x, y, ...children) {
  const element = tip();
  replaceChildren(element, ...children);
  element.hidden = false;
  const box = element.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16;
  element.style.left = `${Math.max(4, left)}px`;
  element.style.top = `${Math.max(4, top)}px`;
}

export function hideTip() {
  tip().hidden = true;
}
