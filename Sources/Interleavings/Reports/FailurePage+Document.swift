extension FailurePage {
    /// The HTML around the data: a table for each of the two executions, and one slider for both.
    ///
    /// Steps are links, `#step=7`, so that a step can be sent to a colleague.
    static func document(title: String, reason: String, blame: String?, json: String, report: String) -> String {
        let (title, reason, report) = (escaped(title), escaped(reason), escaped(report))
        let blame = blame.map { "<p id=\"blame\">\(escaped($0))</p>\n" } ?? ""
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="\(policy)">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>\(title)</title>
            <style>
            \(style)
            </style>
            </head>
            <body>
            \(main(title, reason, blame, report))
            <script type="application/json" id="data">\(json)</script>
            <script>
            \(script)
            </script>
            </body>
            </html>

            """
    }

    /// The visible parts, which a script fills in.
    private static func main(_ title: String, _ reason: String, _ blame: String, _ report: String) -> String {
        """
        <main>
        <h1>\(title)</h1>
        <p class="reason">\(reason)</p>
        \(blame)<div id="program" hidden></div>
        <div id="walk" role="group" aria-label="Walk through the steps">
        <div class="bar">
        <button id="first" aria-label="First step">«</button><button id="back" aria-label="Step back">◀</button>
        <input id="slider" type="range" min="1" aria-label="Step">
        <button id="on" aria-label="Step on">▶</button><button id="final" aria-label="Last step">»</button>
        <button id="parting" hidden></button>
        </div>
        <div id="now" role="status" aria-live="polite" aria-atomic="true"></div>
        </div>
        <p id="verdict"></p>
        <div id="runs"></div>
        <p class="legend">● did something &nbsp; • ran, logged nothing &nbsp; ► not the usual order, ○ would have run \
        &nbsp; ✘ failed. The arrow keys ← and → walk, and a step's number is a link to it. <span id="functions"></span></p>
        <h2>To run the failing schedule again</h2>
        <div id="replay"></div>
        <noscript><p>Walking needs JavaScript, which is in this file. The whole report:</p><pre>\(report)</pre></noscript>
        </main>
        """
    }

    private static func escaped(_ text: String) -> String { SVG.escape(PlainText.clean(text, keepsLines: true)) }

    /// Forbids loading, sending or embedding anything.
    private static let policy =
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

    private static let style = """
        :root { color-scheme: light dark; --page: #fff; --text: #1f2328; --quiet: #59636e; --line: #d1d9e0; --head: #f6f8fa;
          --now: #ddf4ff; --edge: #0969da; --switch: #bc4c00; --fail: #cf222e; --pass: #1a7f37 }
        @media (prefers-color-scheme: dark) { :root { --page: #0d1117; --text: #e6edf3; --quiet: #9198a1; --line: #3d444d;
          --head: #151b23; --now: #11264a; --edge: #58a6ff; --switch: #f0883e; --fail: #ff7b72; --pass: #3fb950 } }
        * { box-sizing: border-box }
        body { margin: 0; background: var(--page); color: var(--text);
          font: 15px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
        main { max-width: 1400px; margin: auto; padding: 12px }
        h1 { font-size: 1.2rem; margin: 0 }
        h2 { font-size: 1rem; margin: 12px 0 4px }
        h1, h2, p, code, pre { overflow-wrap: anywhere }
        .reason { color: var(--fail); white-space: pre-wrap; margin: 4px 0 }
        .reason::before { content: "✘ " }
        #walk { position: sticky; top: 0; z-index: 2; background: var(--page); padding: 6px 0; border-bottom: 1px solid var(--line) }
        .bar { display: flex; flex-wrap: wrap; gap: 6px }
        .bar input { flex: 1 1 120px; min-width: 0 }
        button { font: inherit; color: inherit; background: var(--head); border: 1px solid var(--quiet); border-radius: 6px;
          min-width: 36px; min-height: 36px }
        :focus-visible { outline: 3px solid var(--edge); outline-offset: 1px }
        #now { min-height: 4.2em; padding-top: 4px }
        #now p { margin: 0 }
        #runs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 12px }
        section { min-width: 0 }
        .lanes { position: relative; overflow: auto; max-height: 60vh; border: 1px solid var(--line); border-radius: 6px }
        table { border-collapse: collapse; width: 100% }
        th, td { padding: 2px 8px; text-align: left; vertical-align: top; font-weight: normal; border-left: 1px solid var(--line) }
        thead th { position: sticky; top: 0; background: var(--head); font-weight: 600; max-width: 14em }
        td { min-width: 5.5em; max-width: 22em; overflow-wrap: anywhere }
        tbody th, tfoot th { border-left: 0; text-align: right; color: var(--quiet) }
        tbody th a { color: inherit; display: block; min-width: 24px; min-height: 24px }
        .time td { color: var(--edge); border-top: 1px dashed var(--edge) }
        .gap td { color: var(--quiet) }
        .parting > * { border-top: 2px solid var(--switch) }
        .place { color: var(--quiet) }
        .decisive { color: var(--switch) }
        .failure { color: var(--fail) }
        [aria-current] > * { background: var(--now) }
        .fails { color: var(--fail) }
        .passes { color: var(--pass) }
        .legend { color: var(--quiet); font-size: .85rem }
        .line { display: flex; gap: 8px; align-items: start; margin: 4px 0 }
        .line code { flex: 1; min-width: 0; padding: 8px; user-select: all }
        code { background: var(--head); border-radius: 6px; padding: 0 4px; white-space: pre-wrap }
        #program ul { margin: 4px 0; padding: 0; list-style: none }
        #program p { margin: 0 }
        pre { white-space: pre-wrap }
        @media (max-width: 500px) { .lanes { max-height: 42vh } }
        """

    private static let script = #"""
        "use strict";
        const data = JSON.parse(document.getElementById("data").textContent);
        const find = id => document.getElementById(id);
        function make(parent, name, text = "", attributes = {}) {
          const element = parent.appendChild(document.createElement(name));
          element.textContent = text;
          for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
          return element;
        }
        const runs = [[data.failing, "Fails", "fails"], [data.passing, "Passes", "passes"]].filter(run => run[0])
          .map(([run, title, kind]) => ({ ...run, title, kind, shown: new Map(run.steps.map(step => [step.number, step])) }));
        const total = Math.max(1, ...runs.map(run => run.count));
        const slider = find("slider");
        slider.max = total;

        // The mark and texts of a lane in a step; undefined: none.
        function cell(step, lane) {
          const end = step.events.findIndex(event => event.kind === "failure") + 1 || step.events.length;
          const events = step.events.slice(0, end).filter(event => (event.task || step.task) === lane);
          if (lane !== step.task && !events.length) return lane === step.passedOver ? { mark: "○", texts: [] } : undefined;
          const texts = events.map(event => event.text).filter(text => text);
          const ran = lane === step.task;
          if (ran && step.place !== "pool" && step.place !== lane) texts.unshift("on " + step.place);
          const isDecisive = ran && step.pick > 0;
          if (events.some(event => event.kind === "failure")) return { mark: "✘", kind: "failure", texts };
          if (isDecisive && !texts.length) texts.push("continues");
          return { mark: isDecisive ? "►" : texts.length ? "●" : "•", kind: isDecisive ? "decisive" : "", texts };
        }
        function draw(run) {
          const section = make(find("runs"), "section");
          const title = make(section, "h2", run.title, { id: run.kind, class: run.kind });
          run.box = make(section, "div", "", { class: "lanes", role: "region", tabindex: "0", "aria-labelledby": title.id });
          const table = make(run.box, "table", "", { "aria-labelledby": title.id });
          const head = make(make(table, "thead"), "tr");
          for (const name of ["Step", ...run.lanes]) make(head, "th", name, { scope: "col" });
          const body = make(table, "tbody");
          run.rows = new Map();
          let before = 0;
          for (const step of run.steps) {
            if (step.number > before + 1) gap(body, run, before + 1, step.number - 1);
            before = step.number;
            const row = make(body, "tr", "", { class: (step.task ? "" : "time ") + (step.number === data.parting ? "parting" : "") });
            make(make(row, "th", "", { scope: "row" }), "a", step.number, { href: "#step=" + step.number, tabindex: "-1" });
            if (!step.task) make(row, "td", (step.pick > 0 ? "► " : "── ") + step.time, { colspan: run.lanes.length });
            else for (const lane of run.lanes) fill(make(row, "td"), cell(step, lane));
            run.rows.set(step.number, row);
          }
          const foot = run.last.length ? make(make(table, "tfoot"), "tr") : null;
          if (foot) make(foot, "th", "end", { scope: "row" });
          if (foot) for (const lane of run.lanes) {
            const texts = run.last.filter(item => item.task === lane).map(item => item.text);
            fill(make(foot, "td"), texts.length ? { mark: "✘", kind: "failure", texts } : undefined);
          }
        }
        function gap(body, run, from, to) {
          const row = make(body, "tr", "", { class: "gap" });
          make(row, "th", "⋮", { scope: "row" });
          make(row, "td", `Steps ${from} to ${to} are left out.`, { colspan: run.lanes.length });
        }
        function fill(element, shown) {
          if (!shown) return;
          const [first, ...rest] = shown.texts;
          make(element, "div", shown.mark + (first ? " " + first : ""), { class: shown.kind || "" });
          for (const text of rest) make(element, "div", text, { class: shown.kind || "" });
        }
        // A step in words.
        function words(run, number) {
          const step = run.shown.get(number);
          if (!step && number <= run.count) return "This step is left out of the page; INTERLEAVINGS_STOP stops a replay there.";
          if (!step) return "has ended";
          if (!step.task) return "time moves on to " + step.time + ".";
          const lanes = [step.task, ...run.lanes.filter(lane => lane !== step.task)];
          const parts = lanes.filter(lane => lane === step.task || step.events.some(event => event.task === lane)).map(lane => {
            const texts = cell(step, lane).texts;
            const place = lane === step.task && step.function ? " in " + step.function : "";
            return lane + place + (texts.length ? ": " + texts.join("; ") : " runs");
          });
          const order = step.pick > 0 ? ` ${step.candidates} could run` +
            (step.passedOver ? `; the usual order would run ${step.passedOver}.` : ".") : "";
          const last = number === run.count ? run.last.map(item => ` ${item.task} ${item.text}.`).join("") : "";
          return parts.join(". ") + "." + order + last;
        }
        function show(number, moves = true) {
          const step = Math.min(Math.max(Math.round(number) || 1, 1), total);
          slider.value = step;
          const at = runs.map(run => run.shown.get(step)).find(step => step)?.time;
          slider.setAttribute("aria-valuetext", `step ${step} of ${total}`);
          const parting = data.parting;
          const where = !parting ? "" : step < parting ? " Both schedules run alike." : step > parting ? ""
            : " Here the schedules part.";
          const now = find("now");
          now.textContent = "";
          make(now, "p", `Step ${step} of ${total}${at ? ", at " + at : ""}.${where}`);
          for (const run of parting && step < parting ? [runs[0]] : runs)
            make(now, "p", (runs.length > 1 && step >= parting ? run.title + ": " : "") + words(run, step), { class: "words" });
          for (const run of runs) run.rows.forEach((row, number) => {
            if (number !== step) return row.removeAttribute("aria-current");
            row.setAttribute("aria-current", "step");
            run.box.scrollTop = row.offsetTop - run.box.clientHeight / 2;
            const ran = row.cells[run.lanes.indexOf(run.shown.get(number).task) + 1];
            if (ran) run.box.scrollLeft = ran.offsetLeft - run.box.clientWidth / 2;
          });
          if (moves) try { history.replaceState(null, "", "#step=" + step); } catch { /* Some viewers have no history. */ }
        }
        const asked = () => Number((/^#step=(\d+)$/.exec(location.hash) || [])[1]);
        // Steps that no table shows are skipped.
        function walk(by) {
          let step = Number(slider.value) + by;
          while (step > 1 && step < total && !runs.some(run => run.shown.has(step))) step += by;
          show(step);
        }
        runs.forEach(draw);
        slider.addEventListener("input", () => show(Number(slider.value)));
        find("first").addEventListener("click", () => show(1));
        find("back").addEventListener("click", () => walk(-1));
        find("on").addEventListener("click", () => walk(1));
        find("final").addEventListener("click", () => show(total));
        addEventListener("hashchange", () => show(asked(), false));
        addEventListener("keydown", event => {
          const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (!by || event.target === slider || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          walk(by);
        });
        find("verdict").textContent = data.verdict;
        find("functions").textContent = data.functions;
        if (data.parting) {
          find("parting").hidden = false;
          find("parting").textContent = "Where they part: step " + data.parting;
          find("parting").addEventListener("click", () => show(data.parting));
        }
        function line(parent, id, text) {
          const line = make(parent, "div", "", { class: "line" });
          const code = make(line, "code", text, { id });
          const button = make(line, "button", "Copy", { "aria-describedby": id });
          button.addEventListener("click", async () => {
            getSelection().selectAllChildren(code);
            try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Selected"; }
          });
        }
        for (const [index, text] of data.replay.entries()) line(find("replay"), "replay" + index, text);
        if (data.program) {
          const box = find("program");
          box.hidden = false;
          make(box, "h2", "The generated program");
          make(box, "p", data.program.heading);
          const list = make(box, "ul");
          for (const task of data.program.tasks) {
            const item = make(list, "li", task.name + ":");
            for (const operation of task.operations) {
              item.append(" ");
              make(item, "code", operation);
            }
          }
          line(box, "programReplay", data.program.replay);
        }
        show(asked() || 1, false);
        """#
}
