// Opens the page of examples/grounded_extraction.py in two schemes; prints what is highlighted as JSON.
// node marks.mjs FOLDER_OF_node_modules FOLDER_FOR_SCREENSHOTS URL

import { launch } from "./browser.mjs";

const [modules, pictures, url] = process.argv.slice(2);
const browser = await launch(modules);
const seen = { errors: [], requests: [], grounds: [], overflows: [] };
const page = await browser.newPage();
page.on("pageerror", (error) => seen.errors.push(error.message));
page.on("request", (request) => seen.requests.push(request.url()));
for (const [scheme, width] of [["light", 1280], ["dark", 360]]) {
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: 900 });
  await page.goto(url, { waitUntil: "load" });
  seen.grounds.push(await page.$eval("mark", (mark) => getComputedStyle(mark).backgroundColor));
  seen.overflows.push(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth));
  await page.screenshot({ path: `${pictures}/claims-${scheme}.png` });
}
seen.letter = await page.$eval(".letter", (letter) => letter.textContent);
seen.marks = await page.$$eval("mark", (all) => all.map((mark) => [mark.dataset.claims, mark.textContent]));
await page.$eval("li:last-child a", (link) => link.click()); // this build of Chromium follows no link by mouse within a page
seen.target = await (await page.waitForSelector("mark:target")).evaluate((mark) => mark.id);
await browser.close();
console.log(JSON.stringify(seen));
