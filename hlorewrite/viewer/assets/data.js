// The data in the page: plain JSON, or deflated and written in base64.

export function head() {
  return JSON.parse(document.getElementById("data-head")?.textContent ?? "{}");
}

// A large part by name; null when the page has none, an error when it is damaged.
export async function part(name) {
  const element = document.getElementById(`data-${name}`);
  if (!element) return null;
  if (element.type === "application/json") return JSON.parse(element.textContent);
  const packed = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
