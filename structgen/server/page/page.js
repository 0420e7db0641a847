// The page of a structgen server: no build step, no other requests than to the server itself.

import { curlOf, pythonOf, requestOf, structuredOutputs } from "./request.js";

// Small models do well by these: what an answer needs stands in the prompt, and comes in the order of the schema.
export const EXAMPLES = [
  { name: "Person (schema)", kind: "json", prompt: "Ada Lovelace, a mathematician from London, is 36 years old.",
    constraint: JSON.stringify({ type: "object", properties: { name: { type: "string", maxLength: 40 },
      profession: { type: "string", maxLength: 30 }, city: { enum: ["London", "Paris", "Rome"] },
      age: { type: "integer", minimum: 0, maximum: 130 } }, required: ["name", "profession", "city", "age"],
      additionalProperties: false }, null, 2) },
  { name: "Sum (GBNF)", kind: "grammar", prompt: "Write a sum.",
    constraint: 'root   ::= term (" " [-+*] " " term){1,6}\nterm   ::= number | "(" root ")"\nnumber ::= [1-9] [0-9]{0,3}' },
  { name: "List (Lark)", kind: "grammar", prompt: "Which fruit do you like?",
    constraint: 'start: "I like " fruit (", " fruit)~0..2 " and " fruit "."\nfruit: "apples" | "pears" | "plums" | "cherries"' },
  { name: "Time (expression)", kind: "regex", prompt: "The train leaves at 14:35 from platform 3. When does the train leave?",
    constraint: "([01][0-9]|2[0-3]):[0-5][0-9]" },
  { name: "Sentiment (choice)", kind: "choice", constraint: "positive\nnegative\nmixed",
    prompt: "What is the sentiment of this review? 'Terrible. The soup was cold and the waiter was rude.'" },
  { name: "An error", kind: "grammar", prompt: "Anything.", constraint: 'root ::= "a" (' },
  { name: "Free text", kind: "none", prompt: "Say hello.", constraint: "" },
];

// --- without a document ---

/** A request as the page sends it: its tokens are told of, and its prompt is read anew, since a prompt that is taken over from an
 * earlier request leaves the last digits of the model's numbers otherwise: a seed then gives another output. */
export function sent(request) {
  const { json, choice } = request.structured_outputs ?? {};
  return { ...request, stream: true, structgen: { trace: true, ...(json || choice ? { fields: true } : {}) }, cache_salt: `${Date.now()} ${Math.random()}` };
}

/** The JSON of server-sent events, event by event, from chunks of text. */
export function eventReader(onEvent) {
  let rest = "";
  return (chunk) => {
    const events = (rest + chunk).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data && data !== "[DONE]") onEvent(JSON.parse(data));
    }
  };
}

/** How many tokens came about in which way, in addition to those that are counted. */
export function counted(tokens, counts = { chosen: 0, drafted: 0, forced: 0 }) {
  for (const token of tokens) counts[token.kind] += 1;
  return counts;
}

/** Text that shows what cannot be seen. */
export function visible(text) {
  return text.replaceAll(" ", "␣").replaceAll("\n", "↵\n").replaceAll("\t", "→");
}

/** A probability for readers. */
export function percent(logprob) {
  const share = 100 * Math.exp(logprob);
  return share < 0.1 ? "<0.1%" : logprob !== 0 && share > 99.9 ? ">99.9%" : `${share.toFixed(share < 99.95 ? 1 : 0)}%`;
}

/** An error as the server tells it: what is wrong with the constraint, and where in it. */
export function explained(error) {
  const place = (error.pointer ?? "").replace(/^\/structured_outputs(\/[a-z_]+)?/, "");
  return `${error.message}${place && !error.message.includes(place) ? `\nat ${place}` : ""}`;
}

// --- with one ---

const MOST_REQUESTS = 5; // browsers open six connections to a server; one is for checks
const $ = (id) => document.getElementById(id);
const inEnglish = (number) => number.toLocaleString("en");

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function table(label, columns, body) {
  const head = make("tr", {}, ...columns.map((text) => make("th", { scope: "col", textContent: text })));
  const made = make("table", {}, make("thead", {}, head), body);
  made.setAttribute("aria-label", label);
  return made;
}

/** The answer to a request; throws what the server, or the connection, says is wrong. */
async function post(path, body, signal) {
  const key = $("key").value;
  const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Error("The server cannot be reached.");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => null);
  if (!told?.error) throw new Error(`The server answered with status ${answer.status}.`);
  throw Object.assign(new Error(explained(told.error)), { status: answer.status, ofConstraint: told.error.pointer?.startsWith("/structured_outputs") });
}

function say(text, failed = false) {
  $("status").textContent = text;
  $("status").classList.toggle("failed", failed);
}

// --- the constraint ---

function forget(summary = "Check the constraint, or write: what of it is enforced is told here.") {
  $("problem").replaceChildren();
  $("constraint").removeAttribute("aria-invalid");
  $("report").hidden = true;
  $("summary").textContent = summary;
}

/** Shows what of the constraint is enforced. Throws what is wrong. */
async function check(outputs, signal) {
  if (outputs === null) {
    forget("No constraint: any text.");
    return;
  }
  const { summary, keywords } = await (await post("check", { structured_outputs: outputs }, signal)).json();
  forget(summary);
  if (!keywords.length) return;
  const rows = keywords.map((entry) => make("tr", {}, ...[entry.pointer, entry.status, entry.reason].map((textContent) => make("td", { textContent }))));
  $("report").replaceChildren(table("Keywords", ["place", "status", "why"], make("tbody", {}, ...rows)));
  $("report").hidden = false;
}

/** What a judged text is, in words. */
export function judgement(text, { refused_at_byte: offset, is_begun: isBegun, reasons }) {
  if (offset === null) return "Valid: the constraint allows it.";
  const by = reasons.map(({ pointer, name }) => (pointer || "/") + (name === undefined ? "" : ` (${JSON.stringify(name)})`));
  if (by.length) return `Refused by ${by.join(", ")}.`;
  if (isBegun) return "Not whole, but it may go on.";
  const before = new TextDecoder().decode(new TextEncoder().encode(text).slice(Math.max(0, offset - 20), offset));
  return `Refused after ${JSON.stringify(before)} (byte ${offset}): no keyword alone forbids what stands there, or the spelling does.`;
}

/** Says whether the constraint allows the text of "Why not?", and which of its keywords refuse it. Throws what is wrong. */
async function judge() {
  const outputs = structuredOutputs($("kind").value, $("constraint").value);
  const text = $("document").value;
  if (outputs === null) {
    $("reasons").textContent = "No constraint: any text is allowed.";
    return;
  }
  const { text: judged } = await (await post("check", { structured_outputs: outputs, text })).json();
  $("reasons").textContent = judgement(text, judged);
}

/** Shows a problem where it belongs: at the constraint, at the key, or below the buttons. */
function showProblem(problem) {
  if (problem.name === "AbortError") {
    say("Stopped.");
  } else if (problem.ofConstraint) {
    forget("This constraint cannot be used.");
    const [message, ...place] = problem.message.split("\n"); // only the place, with its caret, must not be wrapped
    $("problem").append(`${message}\n`, ...(place.length ? [make("pre", { textContent: place.join("\n") })] : []));
    $("constraint").setAttribute("aria-invalid", "true");
    $("constraint").focus();
    say("The constraint cannot be used.", true);
  } else {
    if (problem.status === 401) $("key").focus();
    say(problem.message, true);
  }
}

// --- what is copied ---

/** What the form says. */
function fields() {
  return Object.fromEntries(["prompt", "kind", "constraint", "count", "tokens", "temperature", "seed"].map((name) => [name, $(name).value]));
}

let model = "default"; // its name, once the server has told it

function showCode() {
  const url = new URL("v1", location.href).href;
  const given = [url, model, requestOf(fields()), $("key").value !== ""];
  $("curl").textContent = curlOf(...given);
  $("python").textContent = pythonOf(...given);
}

/** Copies a text, and says so at its button. Browsers have a clipboard for pages that come safely; else a selection is copied. */
async function copyText(text, button) {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { value: text, className: "unseen" });
    document.body.append(area);
    area.select();
    isCopied = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const label = button.ariaLabel.replace(/^(Copied|Not copied)/, "Copy");
  const name = (text) => { button.textContent = text; button.ariaLabel = label.replace("Copy", text); };
  name(isCopied ? "Copied" : "Not copied");
  $("copied").textContent = "";
  $("copied").textContent = isCopied ? "Copied." : "The browser does not let the page copy.";
  setTimeout(() => name("Copy"), 2000);
}

// --- outputs ---

class Panel {
  constructor(number, kind) {
    this.tokens = [];
    this.totals = counted([]);
    this.listed = 0;
    this.started = performance.now();
    this.isEnded = this.isGood = false;
    this.decoder = new TextDecoder(); // a character may be cut into several tokens: the last of them shows it
    this.title = make("h3", { textContent: `Output ${number}: ${kind}`, id: `panel-${number}` });
    this.counts = make("p", { className: "counts", textContent: "waits for its turn" });
    this.state = make("p", { className: "end" });
    this.text = make("div", { className: "text" });
    this.body = make("tbody");
    const list = make("div", { className: "tokens", tabIndex: 0 }, table("Tokens", ["token", "how", "allowed", "chance"], this.body));
    list.setAttribute("role", "region");
    list.setAttribute("aria-label", `Tokens of output ${number}`);
    this.details = make("details", {}, make("summary", { textContent: "Tokens" }), list);
    this.details.addEventListener("toggle", () => this.list());
    const copy = make("button", { className: "copy", type: "button", textContent: "Copy", ariaLabel: `Copy output ${number}` });
    copy.addEventListener("click", () => copyText(this.text.textContent, copy));
    this.element = make("article", { className: "panel" }, this.title, this.counts, this.state, copy, this.text, this.details);
    this.element.setAttribute("aria-labelledby", this.title.id);
  }

  add(tokens) {
    for (const token of tokens) {
      const title = `${token.kind}, ${inEnglish(token.allowed)} allowed, chance ${percent(token.logprob)}`;
      this.text.append(make("span", { className: `token ${token.kind}`, title, textContent: this.decoder.decode(new Uint8Array(token.bytes), { stream: true }) }));
    }
    this.tokens.push(...tokens);
    const { chosen, drafted, forced } = counted(tokens, this.totals);
    this.seconds = (performance.now() - this.started) / 1000;
    this.counts.textContent = `${inEnglish(this.tokens.length)} tokens in ${this.seconds.toFixed(1)} s: ${chosen} chosen, ${drafted} drafted, ${forced} forced`;
    this.list();
  }

  list() {
    if (!this.details.open) return;
    for (const token of this.tokens.slice(this.listed)) {
      const cells = [visible(token.token), token.kind, inEnglish(token.allowed), percent(token.logprob)];
      this.body.append(make("tr", {}, ...cells.map((textContent, column) => make("td", { textContent, className: column > 1 ? "count" : "" }))));
    }
    this.listed = this.tokens.length;
  }

  /** A bar beside each value that had few options: how likely it was, and what else might have been written. */
  beliefs(fields) {
    const body = make("tbody");
    for (const [pointer, { written, prob, value }] of Object.entries(fields ?? {})) {
      if (prob === null || !value) continue;
      const others = value.options.filter((option) => JSON.stringify(option.value) !== JSON.stringify(written));
      const name = pointer.slice(1) || "(all)";
      const meter = make("meter", { min: 0, max: 1, value: prob, ariaLabel: `Chance of ${name}` });
      const cells = [[name], [JSON.stringify(written)], [meter, ` ${percent(Math.log(prob))}`],
        [others.slice(0, 3).map((option) => `${JSON.stringify(option.value)} ${percent(Math.log(option.prob))}`).join(", ")]];
      body.append(make("tr", {}, ...cells.map((inside) => make("td", {}, ...inside))));
    }
    if (body.children.length) this.details.before(table("Fields", ["field", "value", "chance", "others"], body));
  }

  /** Nothing follows; what is said of that counts once. */
  end(text, isGood = false) {
    if (this.isEnded) return;
    this.isEnded = true;
    this.isGood = isGood;
    if (!this.tokens.length) this.counts.textContent = "no tokens";
    this.state.textContent = text;
    this.state.classList.toggle("failed", !isGood);
    $("spoken").append(make("p", { textContent: `${this.title.textContent}, ${text}: ${this.text.textContent}` }));
  }
}

const running = new Set(); // what stops each of the requests
let panels = []; // those that began while one was running

async function write() {
  if (running.size >= MOST_REQUESTS) {
    say(`${MOST_REQUESTS} requests are written already: wait for one, or stop them.`, true);
    return;
  }
  if (running.size === 0) {
    panels = [];
    $("panels").replaceChildren();
    $("spoken").replaceChildren();
  }
  const stopping = new AbortController();
  const request = requestOf(fields());
  const kind = $("kind").selectedOptions[0].textContent.replace(/ \(.*|:.*|,.*/, "");
  const body = sent(request);
  let problem = null;
  running.add(stopping);
  $("stop").disabled = false;
  say("Compiling the constraint.");
  try {
    await check(request.structured_outputs ?? null, stopping.signal);
    const begun = Array.from({ length: body.n ?? 1 }, (_, number) => new Panel(panels.length + number + 1, kind));
    panels.push(...begun);
    $("panels").append(...begun.map((panel) => panel.element));
    if ($("outputs").getBoundingClientRect().top > 0.7 * innerHeight) $("outputs").scrollIntoView();
    tell();
    await stream(begun, body, stopping.signal);
  } catch (error) {
    problem = error;
  }
  running.delete(stopping);
  if (running.size === 0) {
    if (document.activeElement === $("stop")) $("write").focus(); // a disabled button would lose the focus
    $("stop").disabled = true;
  }
  if (problem) showProblem(problem);
  else tell();
}

/** Says how far all outputs are. */
function tell() {
  const ended = panels.filter((panel) => panel.isEnded), good = panels.filter((panel) => panel.isGood).length;
  if (running.size) {
    say(`Writing ${panels.length - ended.length} of ${panels.length} outputs.`);
    return;
  }
  const tokens = panels.reduce((sum, panel) => sum + panel.tokens.length, 0);
  const ends = panels.filter((panel) => panel.tokens.length).map((panel) => panel.started + 1000 * panel.seconds);
  const seconds = Math.max(0, Math.max(...ends) - Math.min(...panels.map((panel) => panel.started))) / 1000;
  const speed = ends.length ? `: ${inEnglish(tokens)} tokens in ${seconds.toFixed(1)} s, ${inEnglish(Math.round(tokens / Math.max(seconds, 0.001)))} a second together` : "";
  say(`${good} of ${panels.length} finished${speed}.`);
}

/** Writes what an answer brings into panels. Throws where nothing was begun. */
async function stream(begun, body, signal) {
  const end = (text) => begun.forEach((panel) => panel.end(text));
  const read = eventReader((event) => {
    if (event.error) {
      end(explained(event.error));
      return;
    }
    const [choice] = event.choices;
    if (event.structgen) begun[choice.index].add(event.structgen.tokens);
    if (choice?.finish_reason) {
      begun[choice.index].beliefs(choice.structgen?.fields);
      begun[choice.index].end(choice.finish_reason === "length" ? "closed for its budget" : "finished", true);
      tell();
    }
  });
  try {
    const reader = (await post("v1/chat/completions", body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) read(piece.value);
    end("the answer ended early");
  } catch (problem) {
    end(problem.name === "AbortError" ? "stopped" : problem.status ? problem.message : "the connection was lost");
    if (problem.status) throw problem;
  }
}

function stop() {
  for (const stopping of running) stopping.abort();
}

function pick(example) {
  $("prompt").value = example.prompt;
  $("kind").value = example.kind;
  $("constraint").value = example.constraint;
  edited();
}

function edited() {
  $("constraint").disabled = $("kind").value === "none";
  forget();
  showCode();
}

/** Says which model writes, and at which temperature where none is named; where a key is lacking, that waits for one. */
async function nameModel() {
  const models = await post("v1/models").then((answer) => answer.json()).catch(() => null);
  if (models) {
    const [{ id, sampling_defaults: sampling }] = models.data;
    model = id;
    $("model").textContent = `${id} writes exactly what a constraint allows.`;
    $("temperature").placeholder = sampling.temperature;
  }
  showCode();
}

function begin() {
  $("example").append(...EXAMPLES.map((example, number) => make("option", { value: number, textContent: example.name })));
  pick(EXAMPLES[0]);
  $("example").addEventListener("change", () => pick(EXAMPLES[Number($("example").value)]));
  $("kind").addEventListener("change", edited);
  $("constraint").addEventListener("input", edited);
  $("check").addEventListener("click", () => {
    say("");
    check(structuredOutputs($("kind").value, $("constraint").value)).catch(showProblem);
  });
  $("judge").addEventListener("click", () => {
    say("");
    judge().catch(showProblem);
  });
  $("stop").addEventListener("click", stop);
  $("form").addEventListener("input", showCode);
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", () => copyText($(button.dataset.of).textContent, button));
  }
  $("form").addEventListener("submit", (event) => { event.preventDefault(); write(); });
  $("form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") stop(); });
  $("key").addEventListener("change", nameModel);
  nameModel();
}

if (typeof document !== "undefined") begin();
