// Looks at pages at three widths, light and dark; prints what it saw as JSON: of each page, width and scheme.
// node looks.mjs FOLDER_OF_node_modules FOLDER_FOR_SCREENSHOTS [[NAME, URL, WHETHER AXE JUDGES] ...]

import { WIDTHS, judging, launch, overflows, scheme } from "./browser.mjs";

const [modules, pictures, addresses] = process.argv.slice(2);
const browser = await launch(modules);
const judge = judging(modules);
const seen = [];
for (const [name, url, isJudged] of JSON.parse(addresses)) {
  for (const [width, pixels] of Object.entries(WIDTHS)) {
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.setViewport({ width: pixels, height: 900 });
    for (const value of ["light", "dark"]) {
      await scheme(page, value);
      await page.goto(url, { waitUntil: "networkidle0" });
      await page.screenshot({ path: `${pictures}/${name}-${width}-${value}.png`, fullPage: true });
      const [barriers, held] = isJudged ? await judge(page) : [[], 0];
      const measured = await page.evaluate(() => ({
        ground: getComputedStyle(document.body).backgroundColor,
        ink: getComputedStyle(document.body).color,
        // names of options that are broken over two lines
        broken: [...document.querySelectorAll("td code")].filter((code) => /^--[\w-]+$/.test(code.textContent)
          && code.getClientRects().length > 1).map((code) => code.textContent),
        // text of plots, by its colour
        plots: [...new Set([...document.querySelectorAll("figure svg [id^=text_] g")].map((text) => getComputedStyle(text).fill))],
        plotWidths: [...document.querySelectorAll("figure svg")].map((plot) => plot.getBoundingClientRect().width),
      }));
      seen.push({ name, width, scheme: value, errors, barriers, held, overflows: await overflows(page), ...measured });
    }
    await page.close();
  }
}
await browser.close();
console.log(JSON.stringify(seen));
