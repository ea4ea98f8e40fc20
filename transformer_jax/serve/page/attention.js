// Where the model looks: two rows of tokens. A token that is pointed at shades the other row by its weights.

const of = (id) => document.getElementById(id);
let found = null; // the server's answer
let shown = ["queries", 0]; // the row and the number of the token that is pointed at

export function start() {
  for (const id of ["layer", "head"]) of(id).addEventListener("change", shade);
}

export function forget() {
  found = null;
}

export function show(answer) {
  const another = found?.kind !== answer.kind;
  const grew = answer.queries.length !== found?.queries.length;
  found = answer;
  const [layers, heads] = [answer.weights.length, answer.weights[0].length];
  offer(of("kind"), answer.kinds.map((kind) => [kind, NAMES[kind]]), answer.kind);
  offer(of("layer"), numbered("Layer", layers), of("layer").value || layers - 1);
  offer(of("head"), [["mean", "Mean of the heads"], ...numbered("Head", heads)], of("head").value || "mean");
  of("queries-name").textContent = answer.kind === "encoder" ? "Read" : "Written";
  if (answer.kind === "decoder") of("queries-name").textContent = "Read so far";
  of("keys-name").textContent = answer.kind === "decoder" ? "Looked at" : "Source";
  fill("queries");
  fill("keys");
  if (another || grew || shown[1] >= found[shown[0]].length) shown = ["queries", 0];
  shade();
}

const NAMES = { cross: "Translation over source", encoder: "Source over source", decoder: "Translation over itself" };

function numbered(name, count) {
  return Array.from({ length: count }, (_, i) => [i, `${name} ${i + 1}`]);
}

export function offer(select, pairs, chosen) {
  const known = pairs.some(([value]) => String(value) === String(chosen));
  select.replaceChildren(...pairs.map(([value, name]) => new Option(name, value)));
  select.value = known ? chosen : pairs.at(-1)[0];
}

function fill(side) {
  const tokens = found[side].map((text, i) => token(text, side, i));
  const reads = side === "queries" ? found.kind === "encoder" : found.kind !== "decoder";
  of(side).dir = getComputedStyle(of(reads ? "source" : "translation")).direction; // their text decides
  of(side).replaceChildren(...tokens);
}

function token(text, side, i) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "token";
  const word = document.createElement("bdi"); // </s> stays as it is in a row from right to left
  word.textContent = text.trim() || "␣";
  button.append(word); // the button has the direction of its row, and so its gap on the side of the token before
  button.classList.toggle("inside", !/^[\s<]/.test(text)); // the token continues a word
  button.tabIndex = -1;
  for (const event of ["pointerenter", "focus", "click"]) {
    button.addEventListener(event, () => {
      shown = [side, i];
      shade();
    });
  }
  button.addEventListener("keydown", (event) => move(event, button));
  return button;
}

// One token of a row takes part in the order of Tab; the arrow keys go to its neighbours.
function move(event, button) {
  const [left, right] = button.parentElement.dir === "rtl" ? ["next", "previous"] : ["previous", "next"];
  const next = { ArrowLeft: `${left}ElementSibling`, ArrowRight: `${right}ElementSibling` }[event.key];
  const edge = { Home: button.parentElement.firstElementChild, End: button.parentElement.lastElementChild }[event.key];
  const goal = edge ?? button[next];
  if (!goal) return;
  event.preventDefault();
  goal.focus();
}

// The matrix [query][key] of the chosen layer and head.
function matrix() {
  const heads = found.weights[of("layer").value];
  if (of("head").value !== "mean") return heads[of("head").value];
  return heads[0].map((row, q) => row.map((_, k) => heads.reduce((sum, head) => sum + head[q][k], 0) / heads.length));
}

function shade() {
  if (!found) return;
  const [side, i] = shown;
  const weights = side === "queries" ? matrix()[i] : matrix().map((row) => row[i]);
  const other = side === "queries" ? "keys" : "queries";
  for (const row of ["queries", "keys"]) {
    [...of(row).children].forEach((button, j) => {
      const here = row === side && j === i;
      button.classList.toggle("chosen", here);
      button.tabIndex = here || (row !== side && j === 0) ? 0 : -1;
      button.style.setProperty("--weight", row === other ? weights[j] : 0);
      button.title = row === other ? weights[j].toFixed(3) : "";
    });
  }
  of("weights").textContent = described(found[side][i], side, weights, found[other]);
}

// In a sentence a token that is read from right to left must not turn round what is beside it.
function apart(token) {
  return `\u2068${token.trim() || "␣"}\u2069`;
}

function described(text, side, weights, others) {
  const order = weights.map((weight, j) => [weight, others[j]]).sort((a, b) => b[0] - a[0]);
  const largest = order.slice(0, 3).map(([weight, token]) => `${apart(token)} ${weight.toFixed(2)}`);
  const verb = side === "queries" ? "looks at" : "is looked at by";
  return `${apart(text)} ${verb} ${largest.join(", ")}`;
}
