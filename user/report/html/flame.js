// SPDX-License-Identifier: MIT
// What first touched memory or gave it back, used CPU time, or allocated on GPUs, as a flame graph from the top down: a frame is a
// function as called by the one above it, as wide as what it and all that it called touched, used or allocated.
// Frames narrower than a pixel are left out.

const ROW = 19; // pixels, of a frame
const NARROWEST = 1; // pixels
const COLOURS_SHOWN = 5; // files in the legend

const svg = (tag, attributes, ...children) => {
	const element = document.createElementNS("http://www.w3.org/2000/svg", tag);

	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	element.append(...children);
	return element;
};

// Arguments of a call are limited in number, items of a list are not.
function pushAll(list, items) {
	for (const item of items)
		list.push(item);
}

// The tree of what a graph of the profile has: {name, file, self, size, up, down: the largest first}. A
// caller comes before what it calls, so that sums go up in one pass from the last call to the first.
function flameTree(graph) {
	const {caller, function: called, functions, line} = profile.stacks;
	const nodes = new Map();
	const root = {name: graph.name ?? "The whole run", file: "", self: 0, size: graph.all, up: null, down: []};
	const node = call => {
		if (call === 0)
			return root;
		if (!nodes.has(call)) {
			const {name, file} = functions[called[call]];

			nodes.set(call, {name, file, line: line[call], self: 0, size: 0, up: node(caller[call]), down: []});
		}
		return nodes.get(call);
	};

	graph.calls.forEach((call, i) => {
		node(call).self += graph.amounts[i];
	});
	for (const [, n] of [...nodes].sort(([a], [b]) => b - a)) {
		n.size += n.self;
		n.down.sort((a, b) => b.size - a.size);
		if (n.up !== root)
			n.up.size += n.size;
		n.up.down.push(n);
	}
	// Stacks of which nothing is known, what no sample has, and what came when none counted.
	for (const [name, size] of [["[unknown code]", root.self], ["(unsampled)", graph.unsampled], ["(outside of windows)", graph.outside]]) {
		if (size)
			root.down.push({name, file: "", self: size, size, up: root, down: []});
	}
	root.down.sort((a, b) => b.size - a.size);
	return root;
}

const nanoseconds = n => secs(n / 1e9);

// What graphs are of, by the number that each has: how an amount is written, and what it is called.
const FLAME_KINDS = [
	{amount: bytes, words: n => bytes(n), title: "First touched"},
	{amount: nanoseconds, words: n => `${nanoseconds(n)} of CPU time`, title: "CPU time"},
	{amount: bytes, words: n => `${bytes(n)} allocated on GPUs`, title: "Allocated on GPUs"},
	{amount: bytes, words: n => `${bytes(n)} given back`, title: "Given back"},
];

// "First touched, CPU time, and allocated on GPUs, by"
function flameTitle(graphs) {
	const titles = FLAME_KINDS.filter((_, what) => graphs.some(graph => graph.what === what)).map(({title}) => title);
	const later = titles.slice(1).map(title => title.startsWith("CPU") ? title : title[0].toLowerCase() + title.slice(1));

	if (!later.length)
		return `${titles[0]} by`;
	return `${[titles[0], ...later.slice(0, -1)].join(", ")}, and ${later.at(-1)}, by`;
}

const flame = {
	figure: byId("flame"),
	amount: bytes, // writes what the graph that is shown is of
	root: null,
	zoomed: null, // the frame that has the whole width, with those above it
	at: null, // the frame under the cursor
	frames: new Map(), // node to element, of what is drawn
	colours: new Map(), // file to colour
	width: 0,

	part(selector) {
		return this.figure.querySelector(selector);
	},

	// The files that touched most have the colours that differ most.
	chooseColours(root) {
		const sizes = new Map();
		const walk = [root];

		for (let n = walk.pop(); n; n = walk.pop()) {
			if (n.file)
				sizes.set(n.file, (sizes.get(n.file) ?? 0) + n.self);
			pushAll(walk, n.down);
		}
		const files = [...sizes].sort((a, b) => b[1] - a[1]);

		this.colours = new Map(files.map(([file], i) => [file, profile.phase_colours[i % profile.phase_colours.length]]));
		this.part(".key").replaceChildren(
			...files.filter(([, size]) => size).slice(0, COLOURS_SHOWN).map(([file, size]) => {
				const box = el("span", {className: "swatch"});

				box.style.backgroundColor = this.colours.get(file);
				return el("span", {title: "By functions of that file"}, box, named(file), ` ${this.amount(size)}`);
			}));
	},

	choose(graph) {
		this.amount = FLAME_KINDS[graph.what].amount;
		this.root = this.zoomed = flameTree(graph);
		this.at = null;
		this.chooseColours(this.root);
		this.draw();
	},

	sentence(n) {
		const of = this.root.size;

		return [named(n.name), ...(n.file ? [" (", named(n.file), n.line ? `:${n.line}` : "", ")"] : []), `: ${this.amount(n.size)}, ${percent(n.size, of)}`,
			...(n.self && n.down.length ? [`; of these ${this.amount(n.self)} itself`] : [])];
	},

	frame(n, x, width, row) {
		const element = svg("svg", {x, y: row * ROW, width: Math.max(NARROWEST, width - 0.5), height: ROW - 1, class: "frame"},
			svg("rect", {width: "100%", height: "100%", rx: 2, fill: this.colours.get(n.file) ?? "#c8ced8"}));

		if (width > 20)
			element.append(svg("text", {x: 4, y: ROW - 6}, n === this.root ? `${n.name}: ${this.amount(n.size)}` : n.line ? `${n.name}:${n.line}` : n.name));
		element.node = n;
		this.frames.set(n, element);
		return element;
	},

	draw(width = this.part(".rows").clientWidth) {
		const lane = this.part("svg");
		const chain = [];
		let rows = 0;

		this.width = width;
		this.frames.clear();
		for (let n = this.zoomed; n; n = n.up)
			chain.unshift(n);
		const drawn = document.createDocumentFragment();

		chain.forEach((n, row) => drawn.append(this.frame(n, 0, this.width, row)));
		const todo = [[this.zoomed, 0, chain.length]];

		for (let [n, x, row] = todo.pop(); ; [n, x, row] = todo.pop()) {
			rows = Math.max(rows, row);
			for (const child of n.down) {
				const part = this.zoomed.size ? child.size / this.zoomed.size * width : 0;

				if (part < NARROWEST)
					break;
				drawn.append(this.frame(child, x, part, row));
				todo.push([child, x, row + 1]);
				x += part;
			}
			if (!todo.length)
				break;
		}
		lane.setAttribute("width", this.width);
		lane.setAttribute("height", rows * ROW);
		lane.replaceChildren(drawn);
		this.find();
		this.mark();
	},

	resize(width) {
		if (this.root)
			this.draw(width);
	},

	// Dims what the words are not in, and says how much is in frames that have them: each byte once.
	find() {
		const words = this.part("input").value.toLowerCase();
		const has = n => `${n.name}\n${n.file}`.toLowerCase().includes(words);
		const todo = [this.root];
		let size = 0;

		for (let n = todo.pop(); words && n; n = todo.pop()) {
			if (n !== this.root && has(n))
				size += n.size;
			else
				pushAll(todo, n.down);
		}
		for (const [n, element] of this.frames)
			element.classList.toggle("other", words !== "" && !has(n));
		this.part("output").textContent = words ? `${this.amount(size)}, ${percent(size, this.root.size)}` : "";
	},

	mark() {
		for (const [n, element] of this.frames)
			element.classList.toggle("at", n === this.at);
		this.part(".words").replaceChildren(...this.sentence(this.at ?? this.zoomed));
	},

	go(n) {
		if (!this.frames.has(n))
			return;
		this.at = n;
		this.mark();
		this.frames.get(n).scrollIntoView({block: "nearest"});
		byId("said").replaceChildren(...this.sentence(n));
	},

	zoom(n) {
		this.zoomed = n;
		this.at = n;
		this.draw();
	},

	key(event) {
		const n = this.at ?? this.zoomed;
		const beside = step => n.up?.down[n.up.down.indexOf(n) + step];
		const keys = {
			ArrowDown: () => this.go(n.down[0]),
			ArrowUp: () => this.go(n.up),
			ArrowLeft: () => this.go(beside(-1)),
			ArrowRight: () => this.go(beside(1)),
			Enter: () => this.zoom(n),
			Escape: () => this.zoom(this.root),
		};

		if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key])
			return;
		event.preventDefault();
		keys[event.key]();
	},

	listen() {
		const lane = this.part("svg");
		const under = event => event.target.closest(".frame")?.node;

		lane.addEventListener("click", event => under(event) && this.zoom(under(event)));
		lane.addEventListener("mousemove", event => {
			this.at = under(event) ?? null;
			this.mark();
		});
		lane.addEventListener("mouseleave", () => {
			this.at = null;
			this.mark();
		});
		lane.addEventListener("keydown", event => this.key(event));
		this.part("input").addEventListener("input", () => this.find());
		this.part("select").addEventListener("change", event => this.choose(profile.stacks.graphs[event.target.selectedIndex]));
	},

	start() {
		this.figure.hidden = !profile.stacks;
		if (this.figure.hidden)
			return;
		for (const graph of profile.stacks.graphs) {
			const amount = FLAME_KINDS[graph.what].words(graph.all);

			this.part("select").append(el("option", {}, `${amount}  ${graph.number ? `#${graph.number} ${graph.name}` : "The whole run"}`));
		}
		this.part("h2").textContent = flameTitle(profile.stacks.graphs);
		this.listen();
		this.choose(profile.stacks.graphs[0]);
	},
};
