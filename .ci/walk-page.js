// Runs in a copy of a failure's page, after the page's own script: see walk-page.
"use strict";
(async () => {
  const problems = [];
  const check = (holds, text) => { if (!holds) problems.push(text); };
  const at = selector => document.querySelector(selector);
  const press = key => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const number = () => Number(/^Step (\d+) of /.exec(at("#now").textContent)?.[1]);
  const total = Number(at("#slider").max);
  // The page's own link to the step; the browser ignores all but 200 changes within ten seconds.
  let [link, links, replaceState] = ["", 0, history.replaceState.bind(history)];
  history.replaceState = (state, title, to) => {
    link = to;
    links += 1;
    if (links <= 100) replaceState(state, title, to);
  };

  // What a person sees of the current step in one of the tables: marks and texts by lane.
  function read(kind) {
    const table = at(`[aria-labelledby="${kind}"] table`);
    const row = table?.querySelector('tbody [aria-current="step"]');
    if (!row) return null;
    const names = [...table.querySelectorAll("thead th")].map(cell => cell.textContent);
    const isTime = row.classList.contains("time");
    const lanes = Object.fromEntries([...row.cells].slice(1).map((cell, index) => [isTime ? "time" : names[index + 1],
      { mark: cell.textContent[0], texts: [...cell.children].map(line => line.textContent), text: cell.textContent }]));
    return { number: Number(row.cells[0].textContent), isTime, lanes, text: row.textContent };
  }

  // The walk, by the keyboard; steps that the page leaves out are skipped.
  const steps = {};
  const shown = [data.failing, data.passing].flatMap(run => run?.steps.map(step => step.number) ?? []);
  const path = [...new Set(shown)].sort((one, other) => one - other);
  for (const step of path) {
    check(number() === step, `the arrow key led to step ${number()}, not ${step}`);
    check(Number(at("#slider").value) === step, `the slider stands at ${at("#slider").value}, not ${step}`);
    const address = links <= 100 ? location.hash : link;
    check(address === (step > 1 ? `#step=${step}` : ""), `step ${step} has the link '${address}'`);
    const [fails, passes, now] = [read("fails"), read("passes"), at("#now").textContent];
    steps[step] = fails;
    if (fails) check(fails.number === step, `the row of step ${fails.number} is marked at step ${step}`);
    for (const [lane, { mark, texts }] of Object.entries(fails?.lanes ?? {})) {
      if (!mark || mark === "○" || lane === "time") continue;
      for (const text of [lane, ...texts.map((text, index) => index ? text : text.slice(2))]) {
        check(mark === "►" && text === "continues" || now.includes(text), `step ${step} isn't read as "${text}", but "${now}"`);
      }
    }
    if (data.parting) {
      const areAlike = JSON.stringify(fails?.lanes) === JSON.stringify(passes?.lanes);
      check(step >= data.parting || fails?.text === passes?.text, `the schedules differ before they part, at step ${step}`);
      check(step !== data.parting || !areAlike, `the schedules don't part at step ${step}`);
      check(now.includes("Here the schedules part") === (step === data.parting), `step ${step} says of parting: "${now}"`);
    }
    press("ArrowRight");
  }
  check(number() === total, `beyond the last step comes ${number()}`);

  // The tasks that wait forever stand below the last step.
  const below = [...document.querySelectorAll('[aria-labelledby="fails"] tfoot td')].map(cell => cell.textContent);
  const waits = Object.fromEntries(below.map((text, index) => [data.failing.lanes[index], text]));

  // The text's rows: step, marks by lane, words.
  const lines = at("#expected").textContent.split("\n");
  const start = lines.findIndex(line => /^ *step {2}/.test(line));
  check(start >= 0, "the text has no diagram");
  const picture = lines.slice(start, start + lines.slice(start).indexOf(""));
  const body = picture.findIndex((line, index) => index > 0 && /^\s*\d|^[─►]─/.test(line));
  const squeezed = text => text.replace(/\s/g, "");
  const edges = [...picture[0].matchAll(/(?<=\S.*) {2}(?=\S)/g)].map(match => match.index + 2);
  const cells = line => edges.map((edge, index) => [...line].slice(edge, edges[index + 1]).join(""));
  // A name may be broken anywhere.
  const heads = edges.map((_, index) => squeezed(picture.slice(0, body).map(line => cells(line)[index]).join("")));
  const names = heads.map(head => data.failing.lanes.find(lane => squeezed(lane) === head) ?? head);
  const isGap = line => /^\s*⋮/.test(line);
  const told = new Set(picture.some(isGap) ? path : []);
  let [first, last] = [0, 0];
  for (const line of picture.slice(body)) {
    if (isGap(line)) {
      first = last = data.failing.count;
      continue;
    }
    const time = /^[─►]─ (.+?) ─+$/.exec(line);
    if (time) {
      do last += 1; while (last <= total && !steps[last]?.isTime);
      check(steps[last]?.text.includes(time[1]), `no step moves time to ${time[1]}`);
      told.add(last);
      continue;
    }
    const numbers = /^\s*(\d+)(?:–(\d+))?(?= )/.exec(line);
    if (numbers) [first, last] = [Number(numbers[1]), Number(numbers[2] ?? numbers[1])];
    const rows = [];
    for (let step = first; step <= last; step += 1) { rows.push(steps[step]); told.add(step); }
    if (!rows.some(row => row)) continue;
    cells(line).forEach((cell, index) => {
      if (!"●►✘•○".includes(cell[0] ?? " ") || names[index] === "others") return;
      const isBelow = !numbers && last === data.failing.count && waits[names[index]]?.[0] === cell[0];
      check(isBelow || rows.some(row => row?.lanes[names[index]]?.mark === cell[0]),
        `step ${first} has no ${cell[0]} in the lane '${names[index]}', but: ${rows.map(row => JSON.stringify(row?.lanes)).join()}`);
    });
    const words = line.slice(numbers ? numbers[0].length : 0).replace(/[●►✘•○│⋮]/g, " ").split(/\s+/).filter(Boolean);
    const shown = squeezed(rows.map(row => row?.text ?? "").join() + (last === data.failing.count ? below.join() : ""));
    for (const word of words.map(word => word.replace(/[…:]$/, ""))) check(shown.includes(word), `step ${first} doesn't show '${word}': ${shown}`);
  }
  for (let step = 1; step <= total && steps[step]; step += 1) {
    if (told.has(step)) continue;
    const others = Object.entries(steps[step].lanes).filter(([lane, { mark }]) => mark && mark !== "•" && lane !== "scenario");
    check(!others.length, `step ${step} shows what the text doesn't have: ${JSON.stringify(others)}`);
  }

  // The other ways to walk.
  press("ArrowLeft");
  check(number() === Math.max(total - 1, 1), `the left arrow led to step ${number()}`);
  at("#first").click();
  check(number() === 1, `the first button led to step ${number()}`);
  at("#on").click();
  at("#on").click();
  at("#back").click();
  check(number() === Math.min(2, total), `two steps on and one back led to step ${number()}`);
  at("#final").click();
  check(number() === total, `the last button led to step ${number()}`);
  at("#slider").value = 3;
  at("#slider").dispatchEvent(new Event("input"));
  check(number() === Math.min(3, total), `the slider led to step ${number()}`);
  check(at("#parting").hidden === !data.parting, "the button to the parting isn't as it should be");
  if (data.parting) {
    at("#parting").click();
    check(number() === data.parting, `the button to the parting led to step ${number()}`);
  }
  location.hash = "#step=2";
  await new Promise(resolve => setTimeout(resolve, 100));
  check(number() === Math.min(2, total), `a link to step 2 led to step ${number()}`);

  // A step that the page leaves out says so.
  const hidden = Array.from({ length: total }, (_, index) => index + 1).find(step => !path.includes(step));
  if (hidden) {
    location.hash = `#step=${hidden}`;
    await new Promise(resolve => setTimeout(resolve, 100));
    check(number() === hidden && at("#now").textContent.includes("left out"), `step ${hidden} isn't said to be left out`);
    check(!at('tbody [aria-current="step"]'), `a row is marked at step ${hidden}, which is left out`);
    const gap = at(".gap")?.textContent ?? "nothing";
    check(gap.includes(`Steps ${hidden} to `), `the table says of the steps that are left out: ${gap}`);
  }

  // The generated program, as the text has it.
  check(at("#program").hidden === !data.program, "the generated program isn't shown as it should be");
  for (const line of data.program ? at("#program").innerText.split("\n").filter(line => line && line !== "Copy") : []) {
    const isTold = at("#expected").textContent.includes(line.replace(/^programs: /, "").replace(/\s+$/, ""));
    check(isTold || line === "The generated program", `the text doesn't have the program's '${line}'`);
  }

  // The replay line, which the text may break.
  const text = lines.join(" ").replace(/\s+/g, " ");
  const replay = at("#replay code").textContent.replace(/\s+/g, " ");
  check(text.includes(replay), `the text has another replay line than '${replay}'`);

  // Reach: width, names, contrast, and no network.
  check(innerWidth === 390, `the window is ${innerWidth} pixels wide`);
  check(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} pixels wide`);
  for (const control of document.querySelectorAll("button, input, a, [role=region]")) {
    const labels = control.getAttribute("aria-labelledby");
    const name = control.getAttribute("aria-label") ?? (labels ? document.getElementById(labels)?.textContent : control.textContent);
    check(name || control.hidden, `a control has no name: ${control.outerHTML.slice(0, 80)}`);
  }
  check(at("#now").getAttribute("role") === "status" && at("#now").getAttribute("aria-live") === "polite", "steps aren't announced");
  const colour = text => text.match(/[\d.]+/g).map(Number);
  const light = ([red, green, blue]) => [red, green, blue].map(value => value / 255)
    .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!hasText || ["SCRIPT", "NOSCRIPT"].includes(element.tagName) || element.hidden) continue;
    let ground = element;
    while (ground.parentElement && (colour(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
    const [one, two] = [light(colour(getComputedStyle(element).color)), light(colour(getComputedStyle(ground).backgroundColor))];
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    check(contrast >= 4.5, `contrast of only ${contrast.toFixed(1)}: ${element.outerHTML.slice(0, 80)}`);
  }
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  check(light(colour(getComputedStyle(document.body).backgroundColor)) < 0.2 === isDark, "the page is as dark as it shouldn't be");
  check(!performance.getEntriesByType("resource").length, "the page loads something");
  const isRefused = await new Promise(resolve => {
    addEventListener("securitypolicyviolation", () => resolve(true));
    setTimeout(() => resolve(false), 2000);
    new Image().src = "https://example.invalid/picture.png";
  });
  check(isRefused, "the page may load something");

  const result = problems.length ? problems.slice(0, 12).join("\n") : `walked ${total} steps${isDark ? ", dark" : ""}`;
  parent.postMessage(result, "*");
})().catch(error => parent.postMessage(`${error}\n${error.stack}`, "*"));
