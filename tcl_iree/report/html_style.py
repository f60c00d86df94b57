"""The look of the HTML report; nothing is loaded from anywhere, and light and dark mode are the reader's."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fcfcfb; --card: #ffffff; --ink: #1d2126; --muted: #626b76; --line: #dfe3e8; --code: #f4f6f8;
  --accent: #1668b8; --ours: #1f9d6b; --flags: #8aa4c2; --plain: #a9b0b9; --faint: #c6d2e0; --bad: #c8452f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --card: #1b1f25; --ink: #e5e8ec; --muted: #97a1ad; --line: #313841; --code: #11151a;
    --accent: #6fb3f2; --ours: #3cc48d; --flags: #7f9fc8; --plain: #6d7681; --faint: #3a4a5d; --bad: #f0806a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 74rem; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { margin: 0; font-size: 1.7rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 2.6rem 0 .8rem; font-size: 1.2rem; }
h3 { margin: 1.2rem 0 .4rem; font-size: .95rem; }
p { margin: .5rem 0; max-width: 60rem; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
.muted { color: var(--muted); }
.lead { font-size: 1.15rem; }
.lead b { color: var(--ours); }
dl.facts {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .7rem 1.5rem; margin: 1.2rem 0 0;
}
dl.facts dt { color: var(--muted); font-size: .8rem; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .8rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; font-size: .82rem; white-space: nowrap; }
tbody tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.name { white-space: nowrap; }
td.why { width: 32%; min-width: 16rem; font-size: .85rem; }
.gain { color: var(--ours); font-weight: 600; }
details { margin: .7rem 0; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
summary { padding: .65rem 1rem; cursor: pointer; font-weight: 600; }
summary .muted { font-weight: 400; margin-left: .6rem; }
details > div { padding: 0 1rem 1rem; }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1.4rem; }
@media (max-width: 52rem) { .pair { grid-template-columns: minmax(0, 1fr); } }
pre {
  margin: .3rem 0; padding: .8rem 1rem; overflow: auto; max-height: 26rem; background: var(--code);
  border: 1px solid var(--line); border-radius: 6px;
  font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
pre.wrapped, pre.command { white-space: pre-wrap; overflow-wrap: anywhere; }
pre.command { user-select: all; }
svg { display: block; width: 100%; height: auto; }
svg.bars { min-width: 38rem; max-width: 56rem; }
.wide { overflow-x: auto; }
svg.chart { max-width: 32rem; }
svg text { fill: var(--ink); font-size: 13px; dominant-baseline: middle; }
svg .tick, svg .name { fill: var(--muted); font-size: 11px; dominant-baseline: auto; }
svg .value { fill: var(--muted); }
svg .ours { fill: var(--ours); }
svg .flags { fill: var(--flags); }
svg .plain { fill: var(--plain); }
svg .earlier { fill: var(--faint); }
svg .whisker { stroke: var(--ink); stroke-width: 1.5; opacity: .55; }
svg .axis, svg .grid { stroke: var(--line); fill: none; }
svg .best { stroke: var(--ours); stroke-width: 2.2; fill: none; }
svg .level { stroke: var(--muted); stroke-dasharray: 4 4; fill: none; }
svg .trial { fill: var(--flags); fill-opacity: .75; }
svg .first { fill: none; stroke: var(--flags); stroke-width: 1.6; }
svg .failed { stroke: var(--bad); stroke-width: 1.5; fill: none; }
ul { padding-left: 1.2rem; }
li { margin: .25rem 0; }
"""
