// The server's endpoints, of openapi.json, which it makes of the types that it reads requests with. Text only, no markup.

const find = (id) => document.getElementById(id);

/** An element with text or others in it. */
export function made(tag, inside = [], properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...[inside].flat());
  return element;
}

/** The name of a schema that is named elsewhere; "" of others. */
export const nameOf = (schema) => (schema.$ref ?? "").split("/").pop();

/** What a schema takes, in a few words. */
export function kindOf(schema) {
  if (schema.$ref) return nameOf(schema);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const parts = schema.anyOf ?? schema.oneOf;
  if (parts) return parts.map(kindOf).join(" | ");
  if (schema.type === "array") return `list of ${schema.items ? kindOf(schema.items) : "anything"}`;
  return [schema.type ?? "anything"].flat().join(" | ") + rangeOf(schema);
}

function rangeOf(schema) {
  const least = schema.minimum ?? schema.exclusiveMinimum, most = schema.maximum ?? schema.exclusiveMaximum;
  if (least === undefined && most === undefined) return "";
  return ` (${least ?? "any"} to ${most ?? "any"})`;
}

/** The names of all schemas that a schema leads to, itself aside, in the order in which they come. */
export function namesWithin(schema, schemas, found = new Set()) {
  const walk = (value) => {
    if (Array.isArray(value)) value.forEach(walk);
    else if (value && typeof value === "object") {
      const name = typeof value.$ref === "string" ? nameOf(value) : "";
      if (name && !found.has(name)) {
        found.add(name);
        walk(schemas[name]);
      }
      Object.values(value).forEach(walk);
    }
  };
  walk(schema);
  return [...found];
}

/** A request as a command. */
export function curlOf(method, path, example, base) {
  const address = base.replace(/\/$/, "") + path;
  if (method === "get") return `curl ${address}`;
  const body = JSON.stringify(example, null, 2).replaceAll("'", "'\\''");
  return `curl ${address} \\\n  -H 'content-type: application/json' \\\n  -d '${body}'`;
}

function fieldsOf(schema) {
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, one]) =>
    made("tr", [
      made("td", made("code", name)),
      made("td", kindOf(one) + (required.has(name) ? ", required" : "")),
      made("td", one.description ?? ""),
    ]));
  const head = made("tr", ["Field", "Takes", ""].map((text) => made("th", text, { scope: "col" })));
  return made("div", made("table", [made("thead", head), made("tbody", rows)]), { className: "fields" });
}

function schemaPart(name, schemas) {
  const inside = [made("summary", made("code", name))];
  if (schemas[name].description) inside.push(made("p", schemas[name].description, { className: "soft" }));
  return made("details", [...inside, schemas[name].properties ? fieldsOf(schemas[name]) : made("p", kindOf(schemas[name]))]);
}

function endpoint(path, method, operation, schemas, base) {
  const parts = [made("summary", [made("code", `${method.toUpperCase()} ${path}`), ` ${operation.summary}`])];
  if (operation.security) parts.push(made("p", "Needs a key, where the server has some.", { className: "soft" }));
  const body = operation.requestBody?.content["application/json"];
  parts.push(made("h3", "Example"), made("pre", curlOf(method, path, body?.example, base)));
  if (body) {
    const name = nameOf(body.schema);
    parts.push(made("h3", "Fields"), fieldsOf(schemas[name]));
    parts.push(...namesWithin(schemas[name], schemas).map((each) => schemaPart(each, schemas)));
  }
  return made("details", parts);
}

async function show() {
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error(`openapi.json: status ${answer.status}`);
  const told = await answer.json();
  const base = new URL(".", location.href).href;
  find("title").textContent = `${told.info.title} ${told.info.version}`;
  find("about").replaceChildren(`${told.info.description} As a document: `, made("a", "openapi.json", { href: "openapi.json" }));
  const operations = Object.entries(told.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => endpoint(path, method, operation, told.components.schemas, base)));
  find("endpoints").replaceChildren(...operations);
}

if (globalThis.document) show().catch((error) => { find("about").textContent = String(error); });
