// Uses the page as a reader does, with a mouse, with the keyboard alone; prints what it saw as JSON.
// node page.mjs URL URL_THAT_NEEDS_THE_KEY_sesame FOLDER_OF_node_modules FOLDER_FOR_SCREENSHOTS

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, keyed, modules, pictures] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const load = async (name) => (await import(pathToFileURL(require.resolve(name)))).default;
const chromium = await load("@sparticuz/chromium");
const puppeteer = await load("puppeteer-core");
const browser = await puppeteer.launch({
  args: [...chromium.args, "--no-sandbox"], executablePath: await chromium.executablePath(), headless: "shell",
});
const seen = { errors: [], requests: [], barriers: [] };
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

// Another's judgement of what the page is for those who hear it, or see little.
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
seen.judged = 0;
async function judge(state) {
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => window.axe.run(document));
  seen.judged += passes.length;
  seen.barriers.push(...violations.map(({ id, nodes }) => `${state}: ${id}: ${nodes.map((node) => node.html).join(" ")}`));
}

// Several requests at once, begun by keyboard alone from the first field on.
await set("#count", 3);
await page.keyboard.press("Tab");
seen.firstFocus = await page.evaluate(() => document.activeElement.textContent);
await page.keyboard.press("Tab");
seen.secondFocus = await page.evaluate(() => document.activeElement.id);
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
await page.waitForSelector(".panel tbody tr");
seen.rows = await page.$$eval(".panel:first-child tbody tr", (rows) => rows.length);
await page.screenshot({ path: `${pictures}/light.png`, fullPage: true });
await judge("light");
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
seen.dark = await page.$eval("body", (element) => getComputedStyle(element).backgroundColor);
await page.screenshot({ path: `${pictures}/dark.png`, fullPage: true });
await judge("dark");

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
await page.setViewport({ width: 420, height: 800 });
seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
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
