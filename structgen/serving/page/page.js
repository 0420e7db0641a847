// The page of a structgen server: no build step, no other requests than to the server itself.

export const EXAMPLES = [
  { name: "A person (JSON Schema)", kind: "json", prompt: "Ada Lovelace, a mathematician from London, is 36 years old.",
    constraint: JSON.stringify({ type: "object", properties: { name: { type: "string", maxLength: 40 },
      age: { type: "integer", minimum: 0, maximum: 130 }, skills: { type: "array", items: { type: "string", maxLength: 20 },
      maxItems: 3 }, city: { enum: ["London", "Paris", "Rome"] } }, required: ["name", "age", "skills", "city"],
      additionalProperties: false }, null, 2) },
  { name: "A sum (GBNF)", kind: "grammar", prompt: "Write a sum.",
    constraint: 'root   ::= term (" " [-+*] " " term){1,6}\nterm   ::= number | "(" root ")"\nnumber ::= [1-9] [0-9]{0,3}' },
  { name: "A list (Lark)", kind: "grammar", prompt: "Which fruit do you like?",
    constraint: 'start: "I like " fruit ("," " " fruit)* " and " fruit "."\nfruit: "apples" | "pears" | "plums" | "cherries"' },
  { name: "A date (expression)", kind: "regex", prompt: "When did people first land on the moon?",
    constraint: "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])" },
  { name: "A mood (choice)", kind: "choice", prompt: "How is this review? 'The soup was cold.'", constraint: "good\nbad\nmixed" },
  { name: "An error with its place", kind: "grammar", prompt: "Anything.", constraint: 'root ::= "a" (' },
  { name: "Free text", kind: "none", prompt: "Say hello.", constraint: "" },
];

// --- without a document ---

/** The `structured_outputs` of a request; null for none. What is wrong with a text is for the server to say. */
export function structuredOutputs(kind, text) {
  if (kind === "none") return null;
  if (kind === "choice") return { choice: text.split("\n").filter((line) => line !== "") };
  return { [kind]: text };
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

/** How many tokens came about in which way. */
export function counted(tokens) {
  const counts = { chosen: 0, drafted: 0, forced: 0 };
  for (const token of tokens) counts[token.kind] += 1;
  return counts;
}

/** Text that shows what cannot be seen. */
export function visible(text) {
  return text.replaceAll(" ", "␣").replaceAll("\n", "↵\n").replaceAll("\t", "→");
}

// --- with one ---

const $ = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function headers() {
  const key = $("key").value;
  return { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
}

async function problemOf(answer) {
  try {
    const { error } = await answer.json();
    return `${error.message}${error.pointer ? `\nat ${error.pointer}` : ""}`;
  } catch {
    return `The server answered with status ${answer.status}.`;
  }
}

function constraint() {
  return structuredOutputs($("kind").value, $("constraint").value);
}

function showProblem(message) {
  $("problem").textContent = message;
  $("constraint").setAttribute("aria-invalid", String(message !== ""));
}

/** Shows what of the constraint is enforced, or what is wrong with it. */
async function check(outputs = constraint()) {
  showProblem("");
  $("report").hidden = true;
  if (outputs === null) {
    $("summary").textContent = "No constraint: any text.";
    return;
  }
  const answer = await fetch("check", {
    method: "POST", headers: headers(), body: JSON.stringify({ structured_outputs: outputs }),
  });
  if (!answer.ok) {
    showProblem(await problemOf(answer));
    $("summary").textContent = "This constraint cannot be used.";
    return;
  }
  const report = await answer.json();
  $("summary").textContent = report.summary;
  if (report.keywords.length) {
    const rows = report.keywords.map((entry) => make("tr", {}, make("td", { textContent: entry.pointer }),
      make("td", { textContent: entry.status }), make("td", { textContent: entry.reason })));
    const head = make("tr", {}, ...["place", "what becomes of it", "why"].map((text) => make("th", { scope: "col", textContent: text })));
    $("report").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
    $("report").hidden = false;
  }
}

class Panel {
  constructor(number, count) {
    this.tokens = [];
    this.decoder = new TextDecoder(); // a character may be cut into several tokens: the last of them shows it
    this.counts = make("p", { className: "counts", textContent: "waits" });
    this.text = make("div", { className: "text" });
    this.body = make("tbody");
    const head = make("tr", {}, ...["token", "how it came about", "allowed"].map((text) => make("th", { scope: "col", textContent: text })));
    const table = make("table", {}, make("thead", {}, head), this.body);
    const title = make("h3", { textContent: count === 1 ? "Output" : `Output ${number + 1} of ${count}`, id: `panel-${number}` });
    this.details = make("details", {}, make("summary", { textContent: "Tokens" }), make("div", { className: "tokens", tabIndex: 0 }, table));
    this.details.addEventListener("toggle", () => this.list());
    this.element = make("article", { className: "panel" }, title, this.counts, this.text, this.details);
    this.element.setAttribute("aria-labelledby", title.id);
    this.listed = 0;
    this.started = performance.now();
  }

  add(tokens) {
    for (const token of tokens) {
      const title = `${token.kind}, ${token.allowed.toLocaleString("en")} allowed`;
      this.text.append(make("span", { className: `token ${token.kind}`, title, textContent: this.decoder.decode(new Uint8Array(token.bytes), { stream: true }) }));
    }
    this.tokens.push(...tokens);
    const { chosen, drafted, forced } = counted(this.tokens);
    const seconds = (performance.now() - this.started) / 1000;
    const last = this.tokens.findLast((token) => token.kind !== "forced") ?? this.tokens[0];
    this.counts.textContent = `${this.tokens.length} tokens in ${seconds.toFixed(1)} s: ${chosen} chosen, ${drafted} drafted, ` +
      `${forced} forced; the last choice was among ${last.allowed.toLocaleString("en")}`;
    this.list();
  }

  list() {
    if (!this.details.open) return;
    for (const token of this.tokens.slice(this.listed)) {
      this.body.append(make("tr", {}, make("td", { textContent: visible(token.token) }), make("td", { textContent: token.kind }),
        make("td", { className: "count", textContent: token.allowed.toLocaleString("en") })));
    }
    this.listed = this.tokens.length;
  }

  end(text, failed = false) {
    this.counts.append(`; ${text}`);
    this.counts.classList.toggle("failed", failed);
  }
}

let running = null;

async function write() {
  running?.abort();
  const stopping = (running = new AbortController());
  const outputs = constraint();
  const count = Math.min(16, Math.max(1, Number($("count").value)));
  const panels = Array.from({ length: count }, (_, number) => new Panel(number, count));
  $("panels").replaceChildren(...panels.map((panel) => panel.element));
  $("stop").disabled = false;
  $("status").textContent = count === 1 ? "Writing." : `Writing ${count} outputs.`;
  const checked = check(outputs);
  const ends = await Promise.all(panels.map((panel, number) => stream(panel, number, outputs, stopping.signal)));
  await checked;
  if (running !== stopping) return;
  $("stop").disabled = true;
  const good = ends.filter((end) => end).length;
  $("status").textContent = count === 1 ? (good ? "The output is finished." : "The output failed.") : `${good} of ${count} outputs are finished.`;
}

async function stream(panel, number, outputs, signal) {
  const body = {
    messages: [{ role: "user", content: $("prompt").value }],
    max_tokens: Number($("tokens").value), temperature: Number($("temperature").value),
    seed: Number($("seed").value) + number, stream: true, structgen: { trace: true },
    ...(outputs === null ? {} : { structured_outputs: outputs }),
  };
  let end = false;
  const read = eventReader((event) => {
    if (event.error) {
      panel.end(event.error.message, true);
      return;
    }
    if (event.structgen) panel.add(event.structgen.tokens);
    const reason = event.choices[0]?.finish_reason;
    if (reason) {
      end = true;
      panel.end(reason === "length" ? "closed for its budget" : "finished");
    }
  });
  try {
    const answer = await fetch("v1/chat/completions", { method: "POST", headers: headers(), body: JSON.stringify(body), signal });
    if (!answer.ok) {
      panel.counts.textContent = "";
      panel.end(await problemOf(answer), true);
      return false;
    }
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) read(piece.value);
  } catch (error) {
    panel.end(error.name === "AbortError" ? "stopped" : `the connection failed: ${error.message}`, true);
  }
  return end;
}

function pick(example) {
  $("prompt").value = example.prompt;
  $("kind").value = example.kind;
  $("constraint").value = example.constraint;
  $("constraint").disabled = example.kind === "none";
}

function begin() {
  $("example").append(...EXAMPLES.map((example, number) => make("option", { value: number, textContent: example.name })));
  pick(EXAMPLES[0]);
  $("example").addEventListener("change", () => pick(EXAMPLES[Number($("example").value)]));
  $("kind").addEventListener("change", () => { $("constraint").disabled = $("kind").value === "none"; });
  $("check").addEventListener("click", () => check());
  $("stop").addEventListener("click", () => running?.abort());
  $("form").addEventListener("submit", (event) => { event.preventDefault(); write(); });
  $("form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
  });
  fetch("v1/models", { headers: headers() }).then((answer) => answer.ok ? answer.json() : null).then((models) => {
    if (models) $("model").textContent = `${models.data[0].id} writes exactly what a constraint allows.`;
  }).catch(() => {});
}

if (typeof document !== "undefined") begin();
