// Uses the page as a reader does, with a mouse, with the keyboard alone; prints what it saw as JSON.
// node page.mjs FOLDER_OF_node_modules URL URL_THAT_NEEDS_THE_KEY_sesame FOLDER_FOR_SCREENSHOTS

import { WIDTHS, judging, launch, overflows, scheme } from "./browser.mjs";

const [modules, url, keyed, pictures] = process.argv.slice(2);
const browser = await launch(modules);
const seen = { errors: [], requests: [], barriers: [] };
await browser.defaultBrowserContext().overridePermissions(url, ["clipboard-read", "clipboard-sanitized-write"]);
const page = await browser.newPage();
page.on("pageerror", (error) => seen.errors.push(error.message));
page.on("console", (message) => { // what is refused is logged, too; and nothing else may be, such as what the policy forbids
  if (message.type() === "error" && !/status of 40[01]/.test(message.text())) seen.errors.push(message.text());
});
page.on("request", (request) => seen.requests.push(request.url()));
await page.setViewport({ width: 1280, height: 900 });
await page.goto(url, { waitUntil: "networkidle0" });

const text = (selector) => page.$eval(selector, (element) => element.textContent);
const until = (selector, pattern) => page.waitForFunction((selector, pattern) => new RegExp(pattern).test(document.querySelector(selector)?.textContent),
  { timeout: 60000 }, selector, pattern);
const finished = () => until("#status", "finished");
const set = (selector, value) => page.$eval(selector, (element, value) => { element.value = value; }, value);

const judgement = judging(modules);
seen.judged = 0;
async function judge(state) {
  const [barriers, held] = await judgement(page);
  seen.judged += held;
  seen.barriers.push(...barriers.map((barrier) => `${state}: ${barrier}`));
}

// Several requests at once, begun by keyboard alone from the first field on.
await set("#count", 3);
await page.keyboard.press("Tab");
seen.firstFocus = await page.evaluate(() => document.activeElement.textContent);
await page.keyboard.press("Tab");
seen.secondFocus = await page.evaluate(() => document.activeElement.textContent);
await page.keyboard.press("Tab");
seen.thirdFocus = await page.evaluate(() => document.activeElement.id);
await page.keyboard.down("Control");
await page.keyboard.press("Enter");
await page.keyboard.up("Control");
await finished();
seen.status = await text("#status");
seen.summary = await text("#summary");
seen.spoken = await page.$$eval("#spoken p", (all) => all.map((element) => element.textContent));
seen.top = await page.$eval("#panels", (element) => element.getBoundingClientRect().top);
seen.texts = await page.$$eval(".panel .text", (all) => all.map((element) => element.textContent));
seen.kinds = await page.$$eval(".panel:first-child .token", (all) => all.map((element) => element.className.replace("token ", "")));
await page.click(".panel details summary");
await page.waitForSelector(".panel .tokens tbody tr");
seen.rows = await page.$$eval(".panel:first-child .tokens tbody tr", (rows) => rows.length);

// The same once more: a seed gives the same outputs.
await page.click("#write");
await page.waitForFunction(() => /^Writing/.test(document.querySelector("#status").textContent));
await finished();
seen.again = await page.$$eval(".panel .text", (all) => all.map((element) => element.textContent));

// What is shown, at three widths, light and dark; the code and the list of tokens are open.
await page.$$eval("#code details, .panel:first-child details", (all) => all.forEach((element) => { element.open = true; }));
seen.looks = [];
for (const [name, width] of Object.entries(WIDTHS)) {
  await page.setViewport({ width, height: 900 });
  for (const value of ["light", "dark"]) {
    await scheme(page, value);
    await page.screenshot({ path: `${pictures}/page-${name}-${value}.png`, fullPage: true });
    await judge(`${name} ${value}`);
    const panels = await page.$$eval(".panel", (all) => all.map((element) => element.getBoundingClientRect().width));
    const ground = await page.$eval("body", (element) => getComputedStyle(element).backgroundColor);
    const form = await page.$eval("#form", (element) => element.getBoundingClientRect().width);
    seen.looks.push({ name, value, panels, form, ground, overflows: await overflows(page) });
  }
}
await page.setViewport({ width: 1280, height: 900 });

// By keyboard alone: from the form on to what was written; it is copied, and so is the code.
const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent);
const copied = () => page.evaluate(() => navigator.clipboard.readText());
await page.focus("#write");
seen.stops = [];
seen.outlines = [];
seen.copied = {};
for (let stop = 0; stop < 60; stop += 1) {
  await page.keyboard.press("Tab");
  if (await page.evaluate(() => document.activeElement === document.body)) break; // all was passed
  const name = await focused();
  seen.stops.push(name);
  seen.outlines.push(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle));
  if (/^Copy/.test(name)) {
    await page.keyboard.press("Enter");
    await until("#copied", "Copied");
    seen.copied[name] = await copied();
  }
}
seen.shown = { curl: await text("#curl"), python: await text("#python") };

// Where the page has no clipboard, as over plain HTTP from another machine, a selection is copied.
await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }));
await page.click(".panel:nth-child(2) .copy");
await until(".panel:nth-child(2) .copy", "Copied");
await page.evaluate(() => { delete navigator.clipboard; });
seen.copiedBySelection = await copied();

// A temperature that is named is sent, one that is not is the server's.
seen.placeholder = await page.$eval("#temperature", (element) => element.placeholder);
await page.type("#temperature", "0.5");
seen.named = /"temperature": 0.5,/.test(await text("#curl")) && /temperature=0.5,/.test(await text("#python"));
await set("#temperature", "");
await scheme(page, "dark");

// Errors with their caret.
seen.problems = [];
for (const [kind, constraint] of [["json", '{\n  "type": oops\n}'], ["grammar", 'root ::= "a" ('], ["regex", "(a"]]) {
  await page.select("#kind", kind);
  await set("#constraint", constraint);
  await page.click(kind === "json" ? "#check" : "#write");
  await until("#problem", ".");
  seen.problems.push(await text("#problem"));
  seen.focus = await page.evaluate(() => document.activeElement.id);
  if (kind !== "regex") await page.$eval("#constraint", (element) => element.dispatchEvent(new Event("input")));
}
await page.screenshot({ path: `${pictures}/problem.png` });
await judge("problem");

// Text is never markup; the server may be away.
await page.select("#kind", "choice");
await set("#constraint", "<img src=x onerror=alert(1)>");
await page.click("#write");
await finished();
seen.markup = [await text(".panel .text"), await page.$$eval("img", (all) => all.length)];
await page.evaluate(() => { window.kept = fetch; window.fetch = () => Promise.reject(new TypeError("away")); });
await page.click("#check");
await until("#status", "reached");
await page.evaluate(() => { window.fetch = window.kept; });
await page.setViewport({ width: 320, height: 800 });
seen.overflow = await overflows(page);
await page.screenshot({ path: `${pictures}/narrow.png` });

// What a screen reader is told: every control has a name.
const tree = await page.accessibility.snapshot();
seen.unnamed = [];
const walk = (node) => {
  if (/textbox|button|combobox|spinbutton|link/.test(node.role) && !node.name) seen.unnamed.push(node.role);
  (node.children ?? []).forEach(walk);
};
walk(tree);

// Requests that join others, and stopping them all.
await page.select("#kind", "none");
await set("#tokens", 8000);
await set("#count", 1);
await page.click("#write");
await page.waitForSelector(".panel .token");
await page.click("#write");
await page.waitForSelector(".panel:nth-child(2) .token");
seen.joined = await text("#status");
await page.focus("#stop");
await page.keyboard.press("Escape");
await finished();
seen.stopped = await page.$$eval(".panel .end", (all) => all.map((element) => element.textContent));
seen.focusAfterStop = await page.evaluate(() => document.activeElement.id);

// A key.
await page.goto(keyed, { waitUntil: "networkidle0" });
await page.click("#write");
await until("#status", "key");
seen.keyFocus = await page.evaluate(() => document.activeElement.id);
await page.keyboard.type("sesame");
await page.click("#write");
await finished();
seen.keyed = await text("#status");
seen.model = await text("#model");
await browser.close();
console.log(JSON.stringify(seen));
