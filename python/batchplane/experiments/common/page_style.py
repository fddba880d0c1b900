# SPDX-License-Identifier: BSD-3-Clause
"""page_style.py - frame and style of the page of results: light, dark and printed."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Batchplane: experiments</title>
<style>
:root {
  --ink: #1b1f24; --dim: #57606a; --line: #d0d7de; --paper: #ffffff; --band: #f6f8fa;
  --good: #116329; --bad: #953800; --link: #0550ae;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6edf3; --dim: #9198a1; --line: #3d444d; --paper: #0d1117; --band: #151b23;
    --good: #56d364; --bad: #f0a35e; --link: #79b8ff;
  }
}
* { box-sizing: border-box; }
body {
  max-width: 72rem; margin: 0 auto; padding: 1.5rem; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { font-size: 1.6rem; margin: 0 0 .2rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .3rem; border-top: 1px solid var(--line);
  padding-top: 1.2rem; }
h2 small { color: var(--dim); font-weight: normal; font-size: .8em; margin-left: .4rem; }
a { color: var(--link); }
.origin, summary { color: var(--dim); margin: .2rem 0; }
code, pre { font: .88em ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { background: var(--band); padding: .5rem .7rem; border-radius: 4px; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .8rem 0; }
dt { color: var(--dim); } dd { margin: 0; }
figure { margin: .8rem 0; background: #ffffff; border: 1px solid var(--line); border-radius: 4px;
  padding: .4rem; text-align: center; }
figure img { max-width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0 1rem; font-size: .87rem; }
th, td { text-align: left; vertical-align: top; padding: .22rem .55rem;
  border-bottom: 1px solid var(--line); }
th { background: var(--band); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdicts td:nth-child(4) { white-space: nowrap; font-weight: 600; }
.rows { width: auto; min-width: 50%; font-size: .82rem; }
.rows td { white-space: nowrap; }
details { overflow-x: auto; }
.same, .better { color: var(--good); } .different { color: var(--bad); }
.warning { color: var(--bad); }
@media print {
  :root { --ink: #000; --dim: #444; --line: #bbb; --paper: #fff; --band: #f2f2f2;
    --good: #0b4d1f; --bad: #7a2e00; --link: #000; }
  @page { size: A4; margin: 14mm 12mm; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  table { font-size: 8pt; } .rows { font-size: 7pt; width: 100%; }
  .rows td { white-space: normal; }
  h2 { break-after: avoid; } section { break-before: page; }
  thead { display: table-header-group; }
  tr, figure { break-inside: avoid; }
  figure { border: none; padding: 0; } figure img { max-height: 200mm; }
  a { text-decoration: none; } details { overflow: visible; } summary { display: none; }
}
</style>
</head>
<body>
<h1>Batchplane: experiments</h1>
<p class="origin">$summary</p>
<dl>$facts</dl>
$warnings
$commands
<table><thead><tr><th>name</th><th>what</th><th>how</th><th>same</th><th>better</th>
<th>different</th></tr></thead><tbody>$contents</tbody></table>
<p class="origin">A claim is held against every value that it speaks of: <b>same</b> when all keep
it, <b>better</b> when some lie past it to the good side, <b>different</b> when one does not keep
it. What begins with &quot;ours&quot; is no claim of the papers.</p>
$sections
</body>
</html>
"""
