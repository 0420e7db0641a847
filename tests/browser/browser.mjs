// What the scripts beside this one have in common: the browser, and another's judgement of what it shows.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const WIDTHS = { phone: 390, laptop: 1280, wide: 1920 };

/** Headless Chromium, from the folder that holds node_modules. */
export async function launch(modules) {
  const require = createRequire(`${modules}/package.json`);
  const load = async (name) => (await import(pathToFileURL(require.resolve(name)))).default;
  const chromium = await load("@sparticuz/chromium");
  const puppeteer = await load("puppeteer-core");
  return puppeteer.launch({
    args: [...chromium.args, "--no-sandbox"], executablePath: await chromium.executablePath(), headless: "shell",
  });
}

/** What axe finds wrong with a page for those who hear it, or see little: [[rule, markup] ..., how many rules held]. */
export function judging(modules) {
  const axe = readFileSync(createRequire(`${modules}/package.json`).resolve("axe-core/axe.min.js"), "utf8");
  return async (page) => {
    await page.evaluate(axe);
    const { violations, passes } = await page.evaluate(() => window.axe.run(document));
    return [violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`), passes.length];
  };
}

export const scheme = (page, value) => page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);

/** Whether something of the page lies beside its window: it would have to be moved sideways to be read. */
export const overflows = (page) => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
