// Finds what makes a page hard to read: contrast, names, keyboard, width, lines. Each function returns texts of faults.
(() => {
  const shown = (node) => {
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    return box.width > 1 && box.height > 1 && style.visibility === "visible" && style.clip !== "rect(0px, 0px, 0px, 0px)"
      && node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const label = (node) => `${node.tagName.toLowerCase()}${node.id ? `#${node.id}` : ""}`
    + `${typeof node.className === "string" && node.className ? `.${node.className.trim().split(/\s+/).join(".")}` : ""}`
    + ` "${(node.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40)}"`;

  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const colors = new Map();
  const parsed = (text) => {
    if (!colors.has(text)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = text;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      colors.set(text, [r, g, b, a / 255]);
    }
    return colors.get(text);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(parsed(getComputedStyle(at).backgroundColor));
    const canvas = parsed(matchMedia("(prefers-color-scheme: dark)").matches
      && getComputedStyle(document.documentElement).colorScheme.includes("dark") ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)");
    return layers.reverse().reduce((below, layer) => over(layer, below), canvas);
  };
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (ink, paper) => {
    const [high, low] = [light(ink), light(paper)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const faint = (node, ink, what) => {
    let opacity = 1;
    for (let at = node; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const paper = ground(node), [r, g, b, a] = parsed(ink), found = ratio(over([r, g, b, a * opacity], paper), paper);
    return found < 4.5 ? [`contrast ${found.toFixed(2)} of ${what} ${label(node)}`] : [];
  };

  const contrast = () => {
    const found = [], seen = new Set(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || seen.has(node) || !shown(node)) continue;
      seen.add(node);
      const style = getComputedStyle(node);
      found.push(...faint(node, node.closest("svg") ? style.fill : style.color, "the text of"));
    }
    for (const node of document.querySelectorAll("input[placeholder]"))
      if (shown(node)) found.push(...faint(node, getComputedStyle(node, "::placeholder").color, "the placeholder of"));
    return found;
  };

  const CONTROLS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button], [role=listbox], "
    + "[role=switch], [tabindex='0']";
  const named = (node) => node.getAttribute("aria-label") || node.getAttribute("title")
    || (node.getAttribute("aria-labelledby") || "").split(/\s+/).some((id) => document.getElementById(id)?.textContent)
    || node.innerText?.trim() || node.querySelector?.("img[alt]:not([alt='']), svg title")
    || [...(node.labels ?? [])].some((each) => each.innerText.trim() || each.getAttribute("aria-label"));
  const names = () => {
    const found = [];
    for (const node of document.querySelectorAll(CONTROLS))
      if (shown(node) && !named(node)) found.push(`no name: ${label(node)} ${node.outerHTML.slice(0, 90)}`);
    for (const node of document.querySelectorAll("img"))
      if (!node.alt && node.getAttribute("role") !== "presentation") found.push(`no alternative text: ${node.src}`);
    for (const node of document.querySelectorAll("canvas, svg"))
      if (shown(node) && !node.closest("[aria-hidden=true], button, a, label") && !named(node) && !node.querySelector("title"))
        found.push(`no name: ${label(node)}`);
    if (!document.documentElement.lang) found.push("no language of the page");
    if (!document.title) found.push("no title of the page");
    return found;
  };

  const keyboard = {
    begin() {
      window.reached = new Set();
      document.addEventListener("focusin", (event) => window.reached.add(event.target), true);
      document.activeElement?.blur();
      window.wanted = [...document.querySelectorAll(CONTROLS)].filter((node) => shown(node) && !node.disabled
        && node.getAttribute("tabindex") !== "-1");
      // Chromium also stops at what scrolls, such as a wide code block.
      const scrolls = [...document.querySelectorAll("body *")].filter((node) => shown(node)
        && (node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight)
        && /auto|scroll/.test(getComputedStyle(node).overflow));
      return window.wanted.length + scrolls.length;
    },
    end() {
      const missed = window.wanted.filter((node) => !window.reached.has(node) && shown(node))
        .map((node) => `not reached by Tab: ${label(node)}`);
      const mouse = [...document.querySelectorAll("body *")].filter((node) => shown(node) && !node.closest("svg")
        && getComputedStyle(node).cursor === "pointer" && !node.closest(CONTROLS) && !node.querySelector(CONTROLS)
        && !node.closest("[role=option]") && !window.reached.has(node.closest("label")?.control));
      return missed.concat(mouse.map((node) => `for a mouse only: ${label(node)}`));
    },
  };

  // The page in given fonts, {name: base64}, so that what is measured is the same wherever the browser finds other ones.
  const fonts = (given) => {
    for (const [name, text] of Object.entries(given)) {
      const face = new FontFace(name, Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
      document.fonts.add(face);
      face.load();
    }
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`:root { --sans: CheckSans !important; --mono: CheckMono !important }
      body { --font-stack: CheckSans !important; --font-stack--monospace: CheckMono !important }
      html, body, button, input, select, textarea { font-family: CheckSans !important }
      code, pre, kbd, samp, tt { font-family: CheckMono !important }`);
    document.adoptedStyleSheets = [sheet];
  };
  const wide = () => (document.documentElement.scrollWidth > innerWidth
    ? [`scrolls sideways: ${document.documentElement.scrollWidth} px of ${innerWidth} px`] : []);
  const lines = (limit) => {
    const found = [];
    for (const node of document.querySelectorAll("main p, article p, main li, article li, body > p")) {
      if (!shown(node) || node.closest("table, pre, nav") || node.querySelector("ul, ol, div, pre, table") || !node.textContent.trim()) continue;
      const style = getComputedStyle(node);  // its shorthand is empty where digits are tabular
      pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      const text = node.textContent.trim().replace(/\s+/g, " ").slice(0, 400);
      const letter = pen.measureText(text).width / text.length;
      const length = Math.min(node.getBoundingClientRect().width / letter, text.length);
      if (length > limit) found.push(`lines of ${Math.round(length)} characters: ${label(node)}`);
    }
    return found;
  };
  window.pageChecks = { fonts, contrast, names, keyboard, wide, lines };
})();
