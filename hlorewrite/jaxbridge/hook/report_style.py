"""How the page of a report looks; it follows the system's light or dark colours, and has no script."""

POLICY = ('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">'
          '<meta name="referrer" content="no-referrer">')
STYLE = """
:root { color-scheme: light dark; --paper: #faf9f6; --ink: #1d1c1a; --muted: #66625b; --line: #e3dfd7;
  --accent: #0a5ea8; --compute: #7fa9cf; --exposed: #b4532a; --chosen: #e4eff8; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15161a; --ink: #e8e6e1; --muted: #a09d95; --line: #31343b;
    --accent: #7ab8f0; --compute: #3f6a92; --exposed: #e08a5c; --chosen: #1d3247; }
}
* { box-sizing: border-box; }
body { font: 15px/1.5 ui-sans-serif, system-ui, sans-serif; font-variant-numeric: tabular-nums;
  background: var(--paper); color: var(--ink); max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.15rem; color: var(--muted); font-weight: 600; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.4rem; overflow-wrap: anywhere; }
p { max-width: 52em; overflow-wrap: anywhere; margin: 0.4rem 0 0.9rem; }
a { color: var(--accent); }
.answer { font-size: 1.6rem; line-height: 1.25; font-weight: 650; letter-spacing: -0.01em; max-width: 40em; }
table { border-collapse: collapse; margin: 0.5rem 0 1rem; display: block; overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 1rem 0.3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; }
td.number, th.number { text-align: right; white-space: nowrap; }
tr.chosen td { background: var(--chosen); }
code { font-family: ui-monospace, Consolas, monospace; font-size: 0.9em; overflow-wrap: anywhere; }
td code { overflow-wrap: normal; white-space: nowrap; }
.remarks td { min-width: 7rem; }
summary { cursor: pointer; font-weight: 600; margin: 0.6rem 0; }
td summary { font-weight: 400; margin: 0; color: var(--accent); }
figure { margin: 0.8rem 0 1.2rem; }
figcaption { color: var(--muted); font-size: 0.9rem; }
.axis { display: grid; grid-template-columns: max-content 1fr; gap: 0.35rem 1rem; margin: 0 0 0.4rem; }
.axis dt { color: var(--muted); }
.axis dd { margin: 0; white-space: nowrap; overflow: hidden; }
.bar { display: inline-block; height: 1.1rem; max-width: 100%; vertical-align: middle; }
.compute { background: var(--compute); }
.exposed { background: var(--exposed); }
.length { display: block; font-size: 0.85rem; color: var(--muted); white-space: normal; }
.key { display: inline-block; width: 0.8rem; height: 0.8rem; margin: 0 0.2rem 0 0.6rem; vertical-align: baseline; }
.key:first-child { margin-left: 0; }
footer { color: var(--muted); margin-top: 2.5rem; border-top: 1px solid var(--line); font-size: 0.9rem; }
@media (max-width: 600px) {
  .axis { grid-template-columns: 1fr; gap: 0.1rem; }
  .answer { font-size: 1.3rem; }
  .remarks th { display: none; }
  .remarks tr { display: block; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  .remarks td { display: block; border: 0; padding: 0.1rem 0; }
  .remarks td code { white-space: normal; overflow-wrap: anywhere; }
}
@media print { details { display: block; } }
"""
