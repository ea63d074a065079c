"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  /* A sentence in the language of the page; its fields are in braces. */
  const say = (english, fields = {}) =>
    (data.words[english] || english).replace(/\{(\w+)\}/g, (_, name) => fields[name]);
  const period = say(`a ${data.table.period}`);
  const $ = (id) => document.getElementById(id);
  const money = (cents) => {
    if (cents === null) return say("unknown");
    const size = Math.abs(cents) / 100;
    const digits = size < 10 ? 2 : 0;
    const text = size.toLocaleString("en-US",
      { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return (cents < 0 ? "-$" : "$") + text;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const ticked = (name) =>
    [...document.querySelectorAll(`input[name="${name}"]`)].filter((one) => one.checked)
      .map((one) => one.value);
  const all = (name) => document.querySelectorAll(`input[name="${name}"]`).length;
  const chosen = (name) => (ticked(name).length === all(name) ? null : ticked(name));
  const settings = () => ({
    hours_percent: Number($("hours").value),
    price_percent: Number($("price").value),
    rate_cents: $("rate").value === $("rate").defaultValue ? data.table.rate_cents
      : Math.round(Number($("rate").value)) * 100,
    providers: chosen("provider"),
    purchases: chosen("purchase"),
    cures: chosen("cure"),
  });
  const charts = {};
  const draw = (id, config) => {
    if (charts[id]) charts[id].destroy();
    charts[id] = new Chart($(id), config);
  };
  const axes = (x, y, more = {}) => {
    const axis = (text) => ({ title: { display: true, text, color: colour("--text") },
      ticks: { color: colour("--text") }, grid: { color: colour("--line") }, ...more });
    return { x: axis(x), y: axis(y) };
  };
  const plain = { animation: false, responsive: true, maintainAspectRatio: false };
  const legend = () => ({ legend: { labels: { color: colour("--text") } } });
  const gap = { x: NaN, y: NaN };

  const costAgainstTime = (job, found) => {
    const shown = found.options.filter((one) => one.out === null)
      .map((one) => ({ ...job.options.find((other) => other.id === one.id), cost: one }));
    const share = Number($("hours").value) / 100;
    const dollars = (cents) => cents / 100;
    const crosses = shown.flatMap((one) => [
      { x: one.hours[0] * share, y: dollars(one.cost.mid) },
      { x: one.hours[2] * share, y: dollars(one.cost.mid) }, gap,
      { x: one.hours[1] * share, y: dollars(one.cost.low) },
      { x: one.hours[1] * share, y: dollars(one.cost.high) }, gap]);
    const points = shown.map((one) =>
      ({ x: one.hours[1] * share, y: dollars(one.cost.mid), id: one.id }));
    const best = points.filter((one) => one.id === found.best);
    const frontier = [...points].sort((a, b) => a.x - b.x || a.y - b.y)
      .reduce((kept, one) => (kept.length && kept[kept.length - 1].y <= one.y
        ? kept : [...kept, one]), []);
    const today = found.today === null ? []
      : [{ x: job.hours[1] * share, y: dollars(found.today), id: say("today") }];
    const named = { callbacks: { label: (item) => `${item.raw.id || ""} ${item.raw.x.toFixed(0)} h,`
      + ` ${money(Math.round(item.raw.y * 100))}` } };
    draw("time", { type: "scatter", data: { datasets: [
      { label: say("today"), data: today, backgroundColor: colour("--b"), pointStyle: "rect",
        pointRadius: 7 },
      { label: say("best at these settings"), data: best, backgroundColor: colour("--c"),
        pointRadius: 8, pointStyle: "triangle" },
      { label: say("options"), data: points, backgroundColor: colour("--a"), pointRadius: 4 },
      { label: say("frontier"), data: frontier, showLine: true, stepped: "before", pointRadius: 0,
        borderColor: colour("--c"), borderDash: [4, 3] },
      { label: say("90 % interval"), data: crosses, showLine: true, pointRadius: 0, borderWidth: 1,
        borderColor: colour("--e"), spanGaps: false }] },
    options: { ...plain, scales: axes(say("hours {period}", { period }), say("USD {period}", { period })),
      plugins: { ...legend(), tooltip: named } } });
  };

  const bars = (id, labels, ranges, mids, axis) => draw(id, { type: "bar", data: { labels,
    datasets: [
      { type: "line", label: say("expected"), data: mids.map((x, at) => ({ x, y: labels[at] })),
        showLine: false, pointStyle: "rectRot", pointRadius: 6, backgroundColor: colour("--b"),
        borderColor: colour("--b") },
      { label: say("90 % interval"), data: ranges, backgroundColor: colour("--a"), barThickness: 14 }] },
  options: { ...plain, indexAxis: "y", scales: axes(axis, ""), plugins: legend() } });

  const ladder = (job, found) => {
    const rows = [[say("today"), found.today, found.today, found.today]];
    for (const [title, id] of job.ladder) {
      const one = found.options.find((option) => option.id === id);
      if (one && one.out === null) rows.push([say("{title} ({id})", { title, id }), one.low, one.mid, one.high]);
    }
    const known = rows.filter((row) => row[2] !== null);
    bars("ladder", known.map((row) => row[0]), known.map((row) => [row[1] / 100, row[3] / 100]),
      known.map((row) => row[2] / 100), say("USD {period}", { period }));
  };

  const tornado = (job) => {
    const about = job.options.find((one) => one.id === job.about);
    $("tornado-figure").hidden = !about || !about.by_hours;
    if ($("tornado-figure").hidden) return;
    const apart = [[say("speed on the target machine"), about.by_speed], [say("changes"), about.by_cure],
      [say("hours in use"), about.by_use]];
    const hours = about.by_speed ? apart : [[say("speed and changes (hours)"), about.by_hours]];
    const width = ([, ends]) => Number(ends[1]) - Number(ends[0]);
    const rows = [[say("total"), about.cost],
      ...[...hours, [say("price since it was read"), about.by_price]]
        .sort((a, b) => width(b) - width(a))];
    bars("tornado", rows.map((row) => row[0]),
      rows.map((row) => [Number(row[1][0]), Number(row[1][1])]),
      rows.map(() => Number(about.mid)), say("USD {period} of {id}, as planned", { period, id: about.id }));
  };

  const bill = (job) => {
    const columns = job.bill;
    const names = [...new Set(columns.flatMap((one) => one.lines.map((line) => line[0])))];
    const paint = ["--a", "--b", "--c", "--d", "--e"];
    draw("bill", { type: "bar", data: { labels: columns.map((one) => one.title),
      datasets: names.map((name, at) => ({ label: name, backgroundColor: colour(paint[at % 5]),
        data: columns.map((one) => one.lines.filter((line) => line[0] === name)
          .reduce((sum, line) => sum + Number(line[1]), 0)) })) },
    options: { ...plain, scales: { ...axes("", say("USD {period}, as planned", { period }),
      { stacked: true }) }, plugins: legend() } });
  };

  /* The scales of two charts that share their hours: the same width on the left. */
  const alike = (scales, end) => {
    scales.x = { ...scales.x, type: "linear", min: 0, max: end };
    scales.y = { ...scales.y, afterFit: (axis) => { axis.width = 120; } };
    return scales;
  };
  const overTime = (job) => {
    const line = job.over_time;
    $("over-time").hidden = !line;
    $("no-series").hidden = Boolean(line);
    if (!line) return;
    const end = line.point * line.busy.length;
    const at = (values) => values.map((y, i) => ({ x: line.point * (i + 0.5), y: y === null ? NaN : y }));
    const drawn = (label, values, name, more = {}) => ({ label, data: at(values), pointRadius: 0,
      borderWidth: 2, borderColor: colour(name), backgroundColor: colour(name), ...more });
    const sets = [drawn(line.gpus > 1 ? say("GPUs, mean") : say("GPU"), line.busy, "--a")];
    if (line.gpus > 1) sets.push(drawn(say("busiest GPU"), line.most, "--e", { borderWidth: 1 }),
      drawn(say("least busy GPU"), line.least, "--e", { borderWidth: 1, borderDash: [2, 2] }));
    if (line.host.length)
      sets.push(drawn(say("host"), line.host, "--b", { borderWidth: 1, borderDash: [6, 3] }));
    const busy = alike(axes("", say("% of the time")), end);
    busy.y = { ...busy.y, min: 0, max: 100 };
    draw("busy", { type: "line", data: { datasets: sets },
      options: { ...plain, scales: busy, plugins: { legend: { labels: { color: colour("--text"),
        usePointStyle: true, pointStyle: "line" } } } } });
    const kinds = [...new Set(line.phases.map((one) => one[0]))];
    const scales = alike(axes(say(`${line.unit} since it began`), ""), end);
    scales.y = { ...scales.y, type: "category", labels: kinds };
    draw("phases", { type: "bar", data: { labels: kinds, datasets: [{ grouped: false,
      backgroundColor: colour("--c"), barPercentage: 0.7, minBarLength: 2,
      data: line.phases.map(([kind, from, to]) => ({ x: [line.point * from, line.point * to], y: kind })) }] },
    options: { ...plain, indexAxis: "y", scales, plugins: { legend: { display: false } } } });
    const points = (kind) => line.phases.filter((one) => one[0] === kind)
      .reduce((sum, one) => sum + one[2] - one[1], 0);
    $("phases-said").textContent = kinds
      .map((kind) => `${kind} ${(100 * points(kind) / line.busy.length).toFixed(0)} %`).join(say(", "));
  };

  /* GPUs that nobody is to share at these settings are greyed, and named. */
  const fleetMap = (found) => {
    if (!$("map-said")) return;
    const apart = [];
    document.querySelectorAll("[data-placement]").forEach((one) => {
      const id = Number(one.dataset.placement);
      data.table.packings.forEach((groups, number) => groups.forEach((group, at) => {
        if (!group.placements.includes(id)) return;
        const shared = found.packing === number && found.groups[number][at].packed;
        one.classList.toggle("off", !shared);
        if (!shared) apart.push(...group.jobs);
      }));
    });
    const names = [...new Set(apart)];
    $("map-said").textContent = names.length === 0 ? ""
      : say("Greyed: at these settings {n} jobs do not share as planned: {jobs}.",
        { n: names.length, jobs: names.slice(0, 8).join(say(", ")) + (names.length > 8 ? "..." : "") });
  };

  const cell = (row, text, number) => {
    const made = row.insertCell();
    made.textContent = text;
    if (number) made.className = "n";
  };
  const REASONS = { provider: say("provider unticked"), purchase: say("purchase option unticked"),
    cure: say("needs a change that you have unticked") };
  const optionTable = (job, found) => {
    const body = $("options");
    body.replaceChildren();
    for (const one of found.options) {
      const told = job.options.find((other) => other.id === one.id);
      const row = body.insertRow();
      if (one.out !== null) row.className = "out";
      if (one.id === found.advice && !found.packed) row.className = "chosen";
      cell(row, one.id + (one.id === job.about ? say(" (plan's advice)") : ""));
      cell(row, told.where);
      cell(row, told.gpu);
      cell(row, one.out === null ? (told.at_least ? ">= " : "")
          + say("{mid} ({low} to {high})",
            { mid: money(one.mid), low: money(one.low), high: money(one.high) })
        : REASONS[one.out], true);
      cell(row, one.out === null ? `${told.at_least ? "<= " : ""}${money(one.saves)}` : "", true);
      cell(row, one.out === null ? money(one.net) : "", true);
    }
  };

  const state = () => {
    const parts = [["h", $("hours").value], ["p", $("price").value], ["r", $("rate").value],
      ["job", $("job").value]];
    for (const name of ["provider", "purchase", "cure"])
      if (chosen(name) !== null) parts.push([name, ticked(name).join("~")]);
    return new URLSearchParams(parts).toString();
  };
  const restore = () => {
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const [key, id] of [["h", "hours"], ["p", "price"], ["r", "rate"], ["job", "job"]])
      if (kept.has(key)) $(id).value = kept.get(key);
    for (const name of ["provider", "purchase", "cure"])
      if (kept.has(name)) {
        const wanted = kept.get(name).split("~");
        for (const one of document.querySelectorAll(`input[name="${name}"]`))
          one.checked = wanted.includes(one.value);
      }
  };

  const show = () => {
    const at = Number($("job").value) || 0;
    const asked = settings();
    const found = whatIf(data.table, asked);
    const job = data.jobs[at];
    const mine = found.jobs[at];
    $("hours-said").textContent = say("{share} % of today's", { share: asked.hours_percent })
      + (data.jobs.length === 1 ? `: ${(job.hours[1] * asked.hours_percent / 100).toFixed(0)} h` : "");
    $("price-said").textContent = `${asked.price_percent > 0 ? "+" : ""}${asked.price_percent} %`;
    $("rate-said").textContent = say("${usd} an hour", { usd: asked.rate_cents / 100 });
    const own = mine.advice === "o0" ? say("keep as is") : mine.advice;
    const what = mine.packed ? say("shares a GPU") : own;
    $("answer").textContent = say(
      "At these settings: today {today}, recommended {total} ({low} to {high}) {period}. {job}: {what}.",
      { today: money(found.today), total: money(found.total), low: money(found.low),
        high: money(found.high), period, job: mine.name, what });
    fleetMap(found);
    costAgainstTime(job, mine);
    ladder(job, mine);
    tornado(job);
    bill(job);
    overTime(job);
    optionTable(job, mine);
    $("job-figures").textContent = mine.name;
  };

  const changed = () => {
    history.replaceState(null, "", `#${state()}`);
    show();
  };
  const sortable = (table) => {
    table.querySelectorAll("th button").forEach((button, column) => {
      button.addEventListener("click", () => {
        const down = button.dataset.down !== "yes";
        button.dataset.down = down ? "yes" : "";
        table.querySelectorAll("th").forEach((head) => head.removeAttribute("aria-sort"));
        button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
        [...body.rows].sort((a, b) => {
          const [x, y] = [key(a), key(b)];
          const order = x !== "" && y !== "" && !isNaN(x) && !isNaN(y) ? x - y
            : x.localeCompare(y);
          return down ? -order : order;
        }).forEach((row) => body.append(row));
      });
    });
  };
  restore();
  for (const one of document.querySelectorAll(".controls input, #job"))
    one.addEventListener("input", changed);
  if ($("jobs")) {
    sortable($("jobs"));
    $("find").addEventListener("input", () => {
      const wanted = $("find").value.toLowerCase();
      const rows = [...$("jobs").tBodies[0].rows];
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      $("found").textContent = say("{n} of {all} jobs",
        { n: rows.filter((row) => !row.hidden).length, all: rows.length });
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  /* What is folded on the screen is printed. */
  const folded = [...document.querySelectorAll("details")];
  const unfold = (open) => folded.forEach((one) => { one.open = open; });
  addEventListener("beforeprint", () => { unfold(true); show(); });
  addEventListener("afterprint", () => { unfold(false); show(); });
  show();
})();
