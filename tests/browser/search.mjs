// Searches the documentation as it lies in a folder, without a server; prints what it saw as JSON.
// node search.mjs FOLDER_OF_node_modules URL FOLDER_FOR_SCREENSHOTS WORD ...

import { launch } from "./browser.mjs";

const [modules, url, pictures, ...words] = process.argv.slice(2);
const browser = await launch(modules);
const seen = { errors: [], requests: [], found: {} };
const page = await browser.newPage();
page.on("pageerror", (error) => seen.errors.push(error.message));
page.on("request", (request) => seen.requests.push(request.url()));
await page.setViewport({ width: 1280, height: 900 });
for (const word of words) {
  await page.goto(url, { waitUntil: "load" });
  await page.click("input[name=query]");
  await page.keyboard.type(word, { delay: 20 });
  await page.waitForSelector(".md-search-result__item a", { timeout: 20000 }).catch(() => null);
  seen.found[word] = await page.$$eval(".md-search-result__item a", (all) => all.map((link) => link.href.replace(/[?#].*/, "")));
  await page.screenshot({ path: `${pictures}/search-${word}.png` });
}
if (seen.found[words.at(-1)].length) { // one is followed
  await Promise.all([page.waitForNavigation(), page.click(".md-search-result__item a")]);
  seen.followed = page.url();
}
await browser.close();
console.log(JSON.stringify(seen));
