// Uses the page as a reader does, with a mouse, with the keyboard alone; prints what it saw as JSON.
// node page.mjs URL FOLDER_OF_node_modules FOLDER_FOR_SCREENSHOTS

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, modules, pictures] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const load = async (name) => (await import(pathToFileURL(require.resolve(name)))).default;
const chromium = await load("@sparticuz/chromium");
const puppeteer = await load("puppeteer-core");
const browser = await puppeteer.launch({
  args: [...chromium.args, "--no-sandbox"], executablePath: await chromium.executablePath(), headless: "shell",
});
const seen = { errors: [], requests: [] };
const page = await browser.newPage();
page.on("pageerror", (error) => seen.errors.push(error.message));
page.on("request", (request) => seen.requests.push(request.url()));
await page.setViewport({ width: 1280, height: 900 });
await page.goto(url, { waitUntil: "networkidle0" });

const text = (selector) => page.$eval(selector, (element) => element.textContent);
const finished = () => page.waitForFunction(() => /finished|failed/.test(document.querySelector("#status").textContent), { timeout: 60000 });

// Several requests at once, begun by keyboard alone from the first field on.
await page.$eval("#count", (element) => { element.value = 3; });
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
seen.texts = await page.$$eval(".panel .text", (all) => all.map((element) => element.textContent));
seen.kinds = await page.$$eval(".panel:first-child .token", (all) => all.map((element) => element.className.replace("token ", "")));
await page.click(".panel details summary");
await page.waitForSelector(".panel tbody tr");
seen.rows = await page.$$eval(".panel:first-child tbody tr", (rows) => rows.length);
await page.screenshot({ path: `${pictures}/light.png`, fullPage: true });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
seen.dark = await page.$eval("body", (element) => getComputedStyle(element).backgroundColor);
await page.screenshot({ path: `${pictures}/dark.png`, fullPage: true });

// Errors with their caret.
seen.problems = [];
for (const [kind, constraint] of [["json", '{\n  "type": oops\n}'], ["grammar", 'root ::= "a" ('], ["regex", "(a"]]) {
  await page.select("#kind", kind);
  await page.$eval("#constraint", (element, value) => { element.value = value; }, constraint);
  await page.click("#check");
  await page.waitForFunction(() => document.querySelector("#problem").textContent, { timeout: 20000 });
  seen.problems.push(await text("#problem"));
  await page.evaluate(() => { document.querySelector("#problem").textContent = ""; });
}
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

// Stopping.
await page.select("#kind", "none");
await page.$eval("#tokens", (element) => { element.value = 8000; });
await page.click("#write");
await page.waitForSelector("#stop:not([disabled])");
await page.waitForSelector(".panel .token");
await page.click("#stop");
await finished();
seen.stopped = await text(".panel .counts");
await browser.close();
console.log(JSON.stringify(seen));
