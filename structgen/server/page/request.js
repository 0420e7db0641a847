// A request of the page: what is sent, and the same as code. Nothing here needs a document.

/** The `structured_outputs` of a request; null for none. What is wrong with a text is for the server to say. */
export function structuredOutputs(kind, text) {
  if (kind === "none") return null;
  if (kind === "choice") return { choice: text.split("\n").filter((line) => line !== "") };
  return { [kind]: text };
}

/** What is asked for, without how it is streamed: `fields` are those of the form; an empty one is the server's to choose. */
export function requestOf({ prompt, kind, constraint, count, tokens, temperature, seed }) {
  const outputs = structuredOutputs(kind, constraint);
  return {
    messages: [{ role: "user", content: prompt }], ...(Number(count) === 1 ? {} : { n: Number(count) }), max_tokens: Number(tokens),
    ...(temperature === "" ? {} : { temperature: Number(temperature) }), seed: Number(seed),
    ...(outputs === null ? {} : { structured_outputs: outputs }),
  };
}

/** A request as a curl command. A schema stands in it as it was written, not as a string, where it is JSON. */
export function curlOf(url, model, request, hasKey) {
  const { structured_outputs: outputs, ...rest } = request;
  const members = Object.entries({ model, ...rest }).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`);
  if (outputs) members.push(`"structured_outputs": ${isJson(outputs.json) ? `{"json": ${indented(outputs.json.trim())}}` : JSON.stringify(outputs)}`);
  const lines = [`curl ${quoted(`${url}/chat/completions`)}`, "-H 'content-type: application/json'",
    ...(hasKey ? ['-H "authorization: Bearer $STRUCTGEN_API_KEY"'] : []), `-d ${quoted(`{\n  ${members.join(",\n  ")}\n}`)}`];
  return lines.join(" \\\n  ");
}

/** A request as a program with OpenAI's client. */
export function pythonOf(url, model, request, hasKey) {
  const { structured_outputs: outputs, messages, ...rest } = request;
  const options = Object.entries(rest).map(([name, value]) => `    ${name}=${value},\n`).join("");
  const [[name, value]] = Object.entries(outputs ?? { none: null });
  const text = Array.isArray(value) ? `[${value.map(literal).join(", ")}]` : literal(value);
  const extra = outputs ? `    extra_body={"structured_outputs": {"${name}": ${text}}},\n` : "";
  return `${hasKey ? "import os\n\n" : ""}import openai

client = openai.OpenAI(base_url=${literal(url)}, api_key=${hasKey ? 'os.environ["STRUCTGEN_API_KEY"]' : '"unused"'})
answer = client.chat.completions.create(
    model=${literal(model)},
    messages=[{"role": "user", "content": ${literal(messages[0].content)}}],
${options}${extra})
for choice in answer.choices:
    print(choice.message.content)
`;
}

/** For a shell. */
const quoted = (text) => (/^[\w:\/.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Further lines two spaces in: in JSON no string has several lines. */
const indented = (text) => text.replaceAll("\n", "\n  ");

/** A Python literal; several lines stay several where nothing in them would be read in another way. */
function literal(text) {
  const isPlain = text?.includes("\n") && !/\\|"""|"$|\r/.test(text);
  return isPlain ? `"""${text}"""` : JSON.stringify(text);
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
