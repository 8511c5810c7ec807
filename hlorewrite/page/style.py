"""The look of the page of a run: it follows the system's light or dark colours, and has no script."""

POLICY = ('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">'
          '<meta name="referrer" content="no-referrer">')
DECISION_STYLE = """
.decision th, .decision td { text-align: left; vertical-align: top; padding: 0.3rem 1rem 0.3rem 0; font-weight: 400;
  border-bottom: 1px solid var(--line); }
.decision thead th { color: var(--muted); font-weight: 600; }
.decision .number { text-align: right; white-space: nowrap; }
.decision tr.chosen > * { background: var(--accent-soft); }
.decision .ways { overflow-x: auto; margin: 0.5rem 0 1rem; }
.decision .ways table { border-collapse: collapse; }
.decision .ways td:last-child { min-width: 14rem; }
.decision .answer { font-size: 1.55rem; line-height: 1.25; font-weight: 650; letter-spacing: -0.01em; max-width: 40em;
  margin: 0.4rem 0 0.9rem; }
.before-after { display: flex; flex-wrap: wrap; gap: 0.5rem 2.2rem; margin: 0 0 0.8rem; }
.before-after dt { color: var(--muted); font-size: 0.87rem; }
.before-after dd { margin: 0; }
.before-after strong { font-weight: 650; }
.time-axis { margin: 0.9rem 0 1.2rem; }
.time-axis figcaption { color: var(--muted); font-size: 0.9rem; text-align: left; padding: 0; }
.time-axis dl { display: grid; grid-template-columns: fit-content(14rem) 1fr; gap: 0.35rem 1rem; margin: 0 0 0.4rem; }
.time-axis dt { color: var(--muted); overflow-wrap: anywhere; }
.time-axis dd { margin: 0; min-width: 0; }
.time-axis .span { display: flex; height: 1.1rem; }
.time-axis .length { display: block; font-size: 0.87rem; color: var(--muted); }
.busy { background: var(--busy); }
.exposed { background: var(--exposed); }
.key { display: inline-block; width: 0.8rem; height: 0.8rem; margin: 0 0.2rem 0 0.6rem; vertical-align: baseline; }
.key:first-child { margin-left: 0; }
@media (max-width: 600px) {
  .time-axis dl { grid-template-columns: 1fr; gap: 0.1rem; }
  .decision .answer { font-size: 1.3rem; }
}
"""
"""The style of a decision, for the page of a run and for that of `view`, which has colours of the same names."""
STYLE = """
:root { color-scheme: light dark; --paper: #faf9f6; --sunk: #f3f1ec; --ink: #1d1c1a; --muted: #66625b; --line: #e3dfd7;
  --accent: #0a5ea8; --busy: #7fa9cf; --exposed: #b4532a; --accent-soft: #e4eff8; --gone: #a34a00; --come: #0a5ea8; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15161a; --sunk: #1c1e23; --ink: #e8e6e1; --muted: #a09d95; --line: #31343b;
    --accent: #7ab8f0; --busy: #3f6a92; --exposed: #e08a5c; --accent-soft: #1d3247; --gone: #f0a766; --come: #7ab8f0; }
}
* { box-sizing: border-box; }
body { font: 15px/1.5 ui-sans-serif, system-ui, sans-serif; font-variant-numeric: tabular-nums;
  background: var(--paper); color: var(--ink); max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.15rem; color: var(--muted); font-weight: 600; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.4rem; overflow-wrap: anywhere; }
p { max-width: 44em; overflow-wrap: anywhere; margin: 0.4rem 0 0.9rem; }
a, .count { color: var(--accent); }
.table { overflow-x: auto; margin: 0.5rem 0 1rem; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 1rem 0.3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
code, pre { font-family: ui-monospace, Consolas, monospace; font-size: 0.9em; }
code { overflow-wrap: anywhere; }
td code { overflow-wrap: normal; white-space: nowrap; }
.remarks td { min-width: 7rem; }
summary { cursor: pointer; font-weight: 600; margin: 0.6rem 0; }
td summary { font-weight: 400; margin: 0; color: var(--accent); }
details.inner { margin-left: 1.2rem; }
.inner > summary { font-weight: 400; margin: 0.3rem 0; }
pre { background: var(--sunk); padding: 0.6rem 0.8rem; margin: 0.3rem 0 0.8rem; overflow-x: auto; line-height: 1.4; }
.gone { color: var(--gone); }
.come { color: var(--come); }
.aside { color: var(--muted); }
footer { color: var(--muted); margin-top: 2.5rem; border-top: 1px solid var(--line); font-size: 0.9rem; }
@media (max-width: 600px) {
  .remarks th { display: none; }
  .remarks tr { display: block; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  .remarks td { display: block; border: 0; padding: 0.1rem 0; }
  .remarks td code { white-space: normal; overflow-wrap: anywhere; }
  details.inner { margin-left: 0.5rem; }
}
@media print { details { display: block; } }
"""
