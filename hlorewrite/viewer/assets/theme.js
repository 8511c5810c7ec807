// Light and dark: what the system prefers, until the button says otherwise. Print is always light.

const listeners = [];
const media = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;
let printing = false;

export function isDark() {
  return !printing && (chosen === null ? media.matches : chosen === "dark");
}

// Canvases ask to be told, since they do not follow style sheets.
export function onTheme(listener) {
  listeners.push(listener);
}

function show() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  const button = document.getElementById("theme");
  button.textContent = isDark() ? "☀" : "☾";
  button.title = isDark() ? "Light (T)" : "Dark (T)";
  listeners.forEach((listener) => listener());
}

export function toggleTheme() {
  chosen = isDark() ? "light" : "dark";
  show();
}

export function startTheme() {
  media.addEventListener("change", show);
  addEventListener("beforeprint", () => { printing = true; show(); });
  addEventListener("afterprint", () => { printing = false; show(); });
  document.getElementById("theme").addEventListener("click", toggleTheme);
  show();
}
