// The page to try a model. Texts of the model go into the page by textContent alone, so none is read as HTML.

import * as attention from "./attention.js";

const PAUSE = 400; // milliseconds after the last key until the text is translated
const of = (id) => document.getElementById(id);
let timer = 0;
let request = null; // the request that is on its way
let chosen = null; // the pair of sentences whose attention is shown
let looking = null; // the last request for it

async function answerOf(path, options) {
  const response = await fetch(path, options).catch((error) => {
    if (options?.signal?.aborted) throw error;
    throw new Error("The server cannot be reached: see whether it runs, then translate again, or reload the page.");
  });
  const answer = await response.json().catch((error) => {
    if (response.ok) throw error;
    return { error: `The server answers with the status ${response.status}: try again later.` }; // such as a proxy's
  });
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function start() {
  const model = await answerOf("model");
  const [source, target] = model.languages;
  of("model").textContent = `${model.name}, ${source.name} to ${target.name}`;
  of("source-label").textContent = source.name;
  of("target-label").textContent = target.name;
  of("source").lang = source.code;
  of("translation").lang = target.code;
  document.title = `${source.name} to ${target.name}`;
  const beams = Array.from({ length: model.most_beams }, (_, i) => i + 1);
  const penalties = Array.from({ length: 21 }, (_, i) => i / 10);
  attention.start();
  of("kind").addEventListener("change", look);
  offer(of("beam"), beams, model.beam_size);
  offer(of("penalty"), penalties, model.length_penalty);
  of("source").addEventListener("input", () => later(PAUSE));
  for (const id of ["beam", "penalty"]) of(id).addEventListener("change", () => later(0));
  of("form").addEventListener("submit", (event) => {
    event.preventDefault();
    later(0);
  });
  of("source").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) later(0);
  });
  if (of("source").value) later(0); // the browser kept it
}

function offer(select, numbers, chosen) {
  const all = numbers.includes(chosen) ? numbers : [...numbers, chosen].sort((a, b) => a - b);
  attention.offer(select, all.map((number) => [number, number]), chosen);
}

function later(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(translate, milliseconds);
}

async function translate() {
  request?.abort();
  const own = (request = new AbortController());
  const q = of("source").value;
  if (!q.trim()) {
    show({ text: "", lines: [], warnings: [] }, []);
    return;
  }
  const body = JSON.stringify({ q, beam_size: Number(of("beam").value), length_penalty: Number(of("penalty").value) });
  document.body.classList.add("waiting");
  const why = "Translating; the first use of a beam size, or a longer sentence, takes some seconds.";
  const slow = setTimeout(() => say(why), 1000);
  try {
    const headers = { "Content-Type": "application/json" };
    const answer = await answerOf("hypotheses", { method: "POST", headers, body, signal: own.signal });
    if (own === request) show(answer, q.split("\n"));
  } catch (error) {
    if (own === request) say(error.message, true);
  } finally {
    clearTimeout(slow);
    if (own === request) document.body.classList.remove("waiting");
  }
}

function say(text, error = false) {
  of("status").textContent = text;
  of("status").classList.toggle("error", error);
}

function show(answer, sources) {
  document.body.classList.remove("waiting");
  say(answer.warnings.join("; "));
  of("translation").textContent = answer.text;
  const table = of("found").querySelector("table");
  for (const body of [...table.tBodies]) body.remove();
  answer.lines.forEach((hypotheses, i) => {
    if (!sources[i].trim()) return;
    const body = table.createTBody();
    if (answer.lines.length > 1) heading(body.insertRow(), sources[i]);
    hypotheses.forEach((hypothesis, rank) => fill(body.insertRow(), sources[i], hypothesis, rank));
  });
  of("found").hidden = of("attention").hidden = !answer.lines.length;
  table.querySelector("input")?.click();
}

// Asks for the attention of the chosen hypothesis.
async function look() {
  looking?.abort(); // the last call counts
  const own = (looking = new AbortController());
  try {
    const body = JSON.stringify({ ...chosen, kind: of("kind").value || null });
    const headers = { "Content-Type": "application/json" };
    const answer = await answerOf("attention", { method: "POST", headers, body, signal: own.signal });
    if (own !== looking) return;
    of("matrix").hidden = false;
    attention.show(answer);
  } catch (error) {
    if (own !== looking) return;
    attention.forget();
    of("matrix").hidden = true;
    of("weights").textContent = error.message;
  }
}

function heading(row, source) {
  const cell = document.createElement("th");
  cell.scope = "rowgroup";
  cell.colSpan = 5;
  cell.dir = "auto";
  cell.textContent = source;
  row.append(cell);
}

function fill(row, source, { text, score, log_probability, tokens }, rank) {
  const radio = document.createElement("input");
  radio.type = "radio";
  radio.name = "hypothesis";
  radio.id = `hypothesis-${row.parentElement.parentElement.tBodies.length}-${rank + 1}`;
  radio.addEventListener("change", () => {
    chosen = { source, target: text };
    look();
  });
  row.insertCell().append(radio);
  const label = document.createElement("label");
  label.htmlFor = radio.id;
  label.textContent = text;
  label.dir = "auto";
  label.lang = of("translation").lang;
  add(row, "", "text").append(label);
  add(row, score.toFixed(3), "number");
  add(row, log_probability.toFixed(3), "number");
  add(row, tokens, "number");
}

function add(row, text, kind) {
  const cell = row.insertCell();
  cell.className = kind;
  cell.textContent = text;
  return cell;
}

start().catch((error) => say(error.message, true));
