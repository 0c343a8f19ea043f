// SPDX-License-Identifier: MIT
// A track for each process: its memory over time. All tracks share a scale; only visible ones are drawn.

const TRACK = 40; // pixels

const tracks = {
	figure: byId("tracks"),
	rows: byId("tracks").querySelector(".rows"),
	now: el("div", {className: "now", hidden: true}),
	shown: Math.max(profile.top, 30),
	visible: new Set(),

	// The points of each process: the first and the last index in profile.tracks.
	ranges() {
		const ranges = new Map();

		profile.tracks.process.forEach((process, i) => {
			const range = ranges.get(process);

			if (range)
				range.to = i;
			else
				ranges.set(process, {from: i, to: i});
		});
		return ranges;
	},
	series(index, range) {
		const process = profile.processes[index], end = process.end ?? runEnd;
		const source = range ? profile.tracks : profile.processes.length === 1 ? timeline : null;

		if (!source)
			return null;
		const {from, to} = range ?? {from: 0, to: timeline.time.length - 1};
		const cut = list => list.slice(from, to + 1);
		const list = {times: cut(source.time), sums: []};
		let sum = list.times.map(() => 0);

		for (const [kind] of KINDS) {
			if (!source[kind])
				continue;
			const values = cut(source[kind]);

			sum = sum.map((below, i) => below + values[i]);
			list.sums.push({kind, sum: [...sum, last(sum) ?? 0]});
		}
		list.times.push(Math.max(end, last(list.times) ?? 0));
		return list;
	},
	add(index) {
		const process = profile.processes[index];
		const canvas = el("canvas", {ariaHidden: "true"});
		const row = el("div", {className: "track"}, canvas,
			el("div", {className: "size"}, bytes(process.peak)),
			el("div", {className: "label"}, named(processName(process)), " ", el("span", {className: "dim"}, endOf(process))));

		row.track = {process, canvas, series: this.series(index, this.of.get(index))};
		this.rows.append(row);
		this.observer.observe(row);
	},
	draw(row) {
		const {process, canvas, series} = row.track;
		const c = canvasOf(canvas, GUTTER + plotWidth(), TRACK - 1);
		const x = lanes.x, bottom = TRACK - 3;
		const y = v => bottom - v / this.high * (TRACK - 6);

		c.beginPath();
		c.rect(GUTTER, 0, plotWidth(), TRACK);
		c.clip();
		c.fillStyle = palette.of("line");
		c.fillRect(x(process.start), bottom, x(process.end ?? runEnd) - x(process.start), 1.5);
		for (const {kind, sum} of [...(series?.sums ?? [])].reverse()) {
			const from = Math.max(0, indexAt(series.times, view.min));
			const to = Math.min(series.times.length - 1, indexAt(series.times, view.max) + 1);

			if (to <= from)
				continue;
			const line = stepLine(series.times, sum, from, to, x, y);

			c.fillStyle = c.strokeStyle = palette.of(kind);
			c.fill(areaBelow(line, Math.round(x(series.times[from])), Math.round(x(series.times[to])), bottom));
			c.stroke(line);
		}
	},
	fill() {
		const order = [...profile.processes.keys()];
		const button = this.figure.querySelector(".more button");

		if (byId("tracks-order")?.value !== "start")
			order.sort((a, b) => profile.processes[b].peak - profile.processes[a].peak);
		this.visible.clear();
		this.rows.replaceChildren(this.now);
		for (const index of order.slice(0, this.shown))
			this.add(index);
		button.hidden = this.shown >= order.length;
		button.textContent = `Show ${Math.min(200, order.length - this.shown)} more of ${count(order.length)} processes`;
	},
	redraw() {
		for (const row of this.visible)
			this.draw(row);
	},
	showTime(time, left) {
		this.now.hidden = time === null;
		this.now.style.left = `${GUTTER + left}px`;
		this.now.style.height = `${this.rows.scrollHeight}px`;
	},
	// For a printer: every row that the page has.
	drawAll() {
		for (const row of this.rows.querySelectorAll(".track"))
			this.draw(row);
	},
	start() {
		if (!profile.processes.length) {
			this.figure.hidden = true;
			return;
		}
		this.of = this.ranges();
		this.high = Math.max(1, ...profile.processes.slice(0, 1).map(p => p.peak), profile.processes.reduce((a, p) => Math.max(a, p.peak), 0));
		this.observer = new IntersectionObserver(entries => {
			for (const entry of entries) {
				if (entry.isIntersecting) {
					this.visible.add(entry.target);
					this.draw(entry.target);
				} else {
					this.visible.delete(entry.target);
				}
			}
		});
		byId("tracks-key").append(el("span", {}, `${count(profile.processes.length)} in all, each up to ${bytes(this.high)}`));
		if (profile.processes.length > 1) {
			const select = el("select", {id: "tracks-order", ariaLabel: "Order of the processes"},
				el("option", {value: "peak"}, "largest first"), el("option", {value: "start"}, "oldest first"));

			select.addEventListener("change", () => this.fill());
			byId("tracks-key").append(select);
			this.rows.tabIndex = 0; // it scrolls
		}
		this.figure.querySelector(".more button").addEventListener("click", () => {
			this.shown += 200;
			this.fill();
		});
		this.rows.addEventListener("mousemove", event => {
			const left = event.clientX - this.rows.getBoundingClientRect().left - GUTTER;
			const row = event.target.closest(".track");

			if (left < 0 || left > plotWidth() || !row) {
				cursor.hide();
				return;
			}
			charts[0].setCursor({left, top: 10});
			tip.show(event.clientX, event.clientY, this.tip(row.track, cursor.time));
		});
		this.rows.addEventListener("mouseleave", () => cursor.hide());
		this.fill();
	},
	tip({process, series}, t) {
		const at = series ? indexAt(series.times, t) : -1;
		const alive = t >= process.start && t <= (process.end ?? runEnd);
		const memory = at < 0 || !alive ? 0 : Math.max(...series.sums.map(s => s.sum[at]));

		return [
			el("div", {className: "when"}, named(processName(process))),
			el("table", {},
				pair("at", moment(t, (view.max - view.min) / 1000)),
				series ? pair("memory", alive ? bytes(memory) : "not running") : "",
				pair("its peak", bytes(process.peak)),
				...profile.quantities.map(q => pair(q.hint, inUnit[q.unit](process[q.key]))),
				pair("from", `${secs(process.start)} to ${process.end === null ? "the end" : secs(process.end)}, ${endOf(process)}`)),
		];
	},
};
