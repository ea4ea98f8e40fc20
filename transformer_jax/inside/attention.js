"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const make = (parent, tag, text, properties) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  Object.assign(element, properties || {});
  parent.append(element);
  return element;
};
const MOST_CELLS = 10000;  // a larger matrix is not drawn as a table
const SAID = { encoder: "the encoder reads", decoder: "the decoder reads", cross: "the decoder writes, from the source" };
// In a sentence a token that is read from right to left must not turn round what is beside it.
const apart = (token) => `\u2068${token}\u2069`;
const percent = (weight) => `${Math.round(weight * 100)}%`;
const template = at("drawing").firstElementChild.cloneNode();
let kind, layer, head, pinned = null, shown = null, buttons = { query: [], key: [] };

// Weights are whole numbers of thousandths: kind.weights[layer][head][query][key].
function weights(kind, layer, head) {
  const heads = kind.weights[layer];
  if (head < heads.length) return heads[head].map((row) => row.map((weight) => weight / 1000));
  return heads[0].map((row, q) => row.map((_, k) => heads.reduce((sum, head) => sum + head[q][k], 0) / heads.length / 1000));
}

function ink() {
  return getComputedStyle(document.documentElement).getPropertyValue("--weight");
}

function thumbnail(canvas, matrix) {
  canvas.width = matrix[0].length;
  canvas.height = matrix.length;
  const context = canvas.getContext("2d"), color = ink();
  matrix.forEach((row, q) => row.forEach((weight, k) => {
    context.fillStyle = `rgba(${color}, ${weight})`;
    context.fillRect(k, q, 1, 1);
  }));
}

// The arrow keys move between the buttons of a group, `across` to a row.
function arrows(group, across) {
  group.onkeydown = (event) => {
    const all = [...group.querySelectorAll("button")], here = all.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
    if (step === undefined || here < 0 || !all[here + step]) return;
    event.preventDefault();
    all[here + step].focus();
  };
}

function showKinds() {
  at("kinds").replaceChildren();
  data.kinds.forEach((each) => {
    const button = make(at("kinds"), "button", each.name, { type: "button", onclick: () => choose(each, null, null) });
    button.setAttribute("aria-pressed", each === kind);
  });
  arrows(at("kinds"), 1);
}

function showHeads() {
  const count = kind.weights[0].length, columns = count > 1 ? count + 1 : 1;
  const grid = at("heads");
  grid.replaceChildren();
  grid.style.gridTemplateColumns = `auto repeat(${columns}, minmax(1.8rem, 5rem))`;
  make(grid, "span", "");
  for (let h = 0; h < columns; h++) make(grid, "span", h < count ? h + 1 : "mean");
  kind.weights.forEach((_, l) => {
    make(grid, "span", l + 1);
    for (let h = 0; h < columns; h++) {
      const button = make(grid, "button", undefined, { type: "button", onclick: () => choose(kind, l, h) });
      const name = h < count ? `head ${h + 1}` : "mean of the heads";
      button.setAttribute("aria-label", `layer ${l + 1}, ${name}`);
      button.setAttribute("aria-pressed", l === layer && h === head);
      thumbnail(make(button, "canvas"), weights(kind, l, h));
    }
  });
  arrows(grid, columns);
}

function showTokens() {
  for (const [side, id] of [["query", "queries"], ["key", "keys"]]) {
    const group = at(id);
    group.replaceChildren();
    group.setAttribute("aria-label", side === "query" ? "tokens that look" : "tokens that are looked at");
    buttons[side] = kind[side].map((text, i) => make(group, "button", text, {
      type: "button", dir: "auto",
      onmouseenter: () => look({ side, i }), onmouseleave: () => look(pinned), onfocus: () => look({ side, i }),
      onblur: () => look(pinned), onclick: () => { pinned = { side, i }; look(pinned); },
    }));
    arrows(group, 1);
  }
}

function showMatrix() {
  const table = at("matrix"), large = kind.query.length * kind.key.length > MOST_CELLS;
  at("matrix-card").hidden = large;
  table.replaceChildren();
  if (large) return;
  const top = make(make(table, "thead"), "tr"), body = make(table, "tbody"), matrix = weights(kind, layer, head);
  make(top, "td", "");
  kind.key.forEach((text) => make(top, "th", text, { scope: "col" }));
  kind.query.forEach((text, q) => {
    const row = make(body, "tr");
    make(row, "th", text, { scope: "row" });
    kind.key.forEach((other, k) => {
      const cell = make(row, "td", undefined, { title: `${apart(text)} \u2192 ${apart(other)}: ${percent(matrix[q][k])}` });
      cell.style.backgroundColor = `rgba(${ink()}, ${matrix[q][k]})`;
      cell.onmouseenter = () => look({ side: "query", i: q, other: k });
      cell.onmouseleave = () => look(pinned);
    });
  });
}

// Draws the lines of one token, or of all.
function look(chosen) {
  shown = chosen;
  const matrix = weights(kind, layer, head), svg = at("drawing"), box = at("lines").getBoundingClientRect();
  const place = (side, i, edge) => {
    const rectangle = buttons[side][i].getBoundingClientRect();
    return [rectangle[edge] - box.left + at("lines").scrollLeft, rectangle.top - box.top + rectangle.height / 2];
  };
  svg.replaceChildren();
  const of = (q, k) => !chosen || (chosen.side === "query" ? chosen.i === q : chosen.i === k);
  matrix.forEach((row, q) => row.forEach((weight, k) => {
    if (!of(q, k) || weight < (chosen ? 0.005 : 0.04)) return;
    const line = template.cloneNode(), [x1, y1] = place("query", q, "right"), [x2, y2] = place("key", k, "left");
    for (const [name, value] of Object.entries({ x1: x1 + 2, y1, x2: x2 - 2, y2 })) line.setAttribute(name, value);
    line.style.strokeWidth = 0.6 + 4 * weight;
    line.style.opacity = Math.min(1, chosen ? 0.12 + weight : 0.85 * weight);
    svg.append(line);
  }));
  const other = chosen && (chosen.side === "query" ? "key" : "query");
  const beside = chosen && (other === "key" ? matrix[chosen.i] : matrix.map((row) => row[chosen.i]));
  for (const side of ["query", "key"]) buttons[side].forEach((button, i) => {
    const weight = side === other ? beside[i] : 0;
    button.style.backgroundColor = weight ? `rgba(${ink()}, ${weight})` : "";
    button.style.color = weight > 0.5 ? "var(--on-weight)" : "";
    button.classList.toggle("chosen", Boolean(chosen) && chosen.side === side && chosen.i === i);
  });
  document.querySelectorAll("#matrix .chosen").forEach((cell) => cell.classList.remove("chosen"));
  const mark = (q, k) => {
    const row = at("matrix").tBodies[0] && at("matrix").tBodies[0].rows[q];
    if (row) row.cells[k].classList.add("chosen");
  };
  if (chosen && chosen.side === "query") mark(chosen.i, 0);
  if (chosen && chosen.other !== undefined) mark(chosen.i, chosen.other + 1);
  say(chosen, other, beside);
}

function say(chosen, other, beside) {
  if (!chosen) {
    at("said").textContent = "All tokens on the left, and what they look at. The stronger a line, the larger its weight.";
    return;
  }
  const best = beside.map((weight, i) => [weight, i]).sort((a, b) => b[0] - a[0]).slice(0, 4);
  const list = best.map(([weight, i]) => `\u201c${apart(kind[other][i])}\u201d ${percent(weight)}`).join(", ");
  const name = `\u201c${apart(kind[chosen.side][chosen.i])}\u201d (${chosen.i + 1})`;
  at("said").textContent = chosen.side === "query" ? `${name} looks at ${list}` : `${name} is looked at by ${list}`;
}

function choose(newKind, newLayer, newHead) {
  kind = newKind;
  layer = newLayer === null ? kind.weights.length - 1 : newLayer;
  head = newHead === null ? (kind.weights[0].length > 1 ? kind.weights[0].length : 0) : newHead;
  pinned = null;
  const count = kind.weights[0].length;
  at("caption").textContent = `${SAID[kind.name]} \u2013 layer ${layer + 1}, ${head < count ? `head ${head + 1}` : "mean of the heads"}`;
  const group = document.activeElement.closest && document.activeElement.closest(".kinds, .heads");
  const place = group ? [...group.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  showKinds();
  showHeads();
  showTokens();
  showMatrix();
  look(null);
  if (place >= 0) group.querySelectorAll("button")[place].focus();
}

at("run").textContent = data.run;
data.texts.forEach((text) => make(at("texts"), "p", text, { dir: "auto" }));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { pinned = null; look(null); }
});
const again = () => choose(kind, layer, head);
addEventListener("resize", () => look(shown));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
choose(data.kinds.find((each) => each.name === "cross") || data.kinds[0], null, null);
if (document.fonts) document.fonts.ready.then(() => look(shown));
