// SPDX-License-Identifier: MIT
// Numbers as text for people, as user/base/units.c writes them, and elements made of text. A text of
// the profile becomes a text node, never markup.

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

function bytes(n) {
	let i = 0;

	while (n >= 1023.5) {
		n /= 1024;
		i++;
	}
	return `${n.toFixed(i === 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2)} ${SIZES[i]}`;
}

const delta = n => (n < 0 ? "\u2212" : "+") + bytes(Math.abs(n));
// For an axis: without trailing zeros.
const bytesShort = n => bytes(n).replace(/\.0+ /, " ").replace(/(\.\d)0 /, "$1 ");
const rate = n => `${bytes(n)}/s`;
const count = n => n.toLocaleString("en");
// Of a number as text; whole numbers and what is no number stay as they are.
const sixDigits = text => /^-?\d+$/.test(text) || Number.isNaN(Number(text)) ? text : String(Number(Number(text).toPrecision(6)));
// "MINOR", as tables of text have it.
const asTitle = word => word[0] + word.slice(1).toLowerCase();
const inUnit = {bytes, secs, count}; // of a later quantity
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

function secs(t) {
	const whole = Math.round(t);
	const two = n => String(n).padStart(2, "0");

	if (t === 0)
		return "0 s";
	if (t < 1e-3)
		return `${(t * 1e6).toFixed(0)} \u00b5s`;
	if (t < 0.9995)
		return `${(t * 1e3).toFixed(0)} ms`;
	if (t < 119.95)
		return `${t.toFixed(1)} s`;
	if (whole < 3600)
		return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
	return `${Math.floor(whole / 3600)}h ${two(Math.floor(whole / 60) % 60)}m`;
}

// Digits after the point that tell multiples of step apart; with exact, that show them exactly.
function digitsOf(step, exact) {
	const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
	const scaled = step * 10 ** digits;

	return exact && Math.abs(scaled - Math.round(scaled)) > 1e-6 ? digits + 1 : digits;
}

// A time, with the digits that steps of this size need.
function moment(t, step, exact = false) {
	const digits = digitsOf(step, exact);

	if (step < 1e-3)
		return `${(t * 1e3).toFixed(digitsOf(step * 1e3, exact))} ms`;
	if (t < 120)
		return `${t.toFixed(digits)} s`;
	return `${Math.floor(t / 60)}m ${(t % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0")}s`;
}

function percent(part, whole) {
	const p = whole ? 100 * part / whole : 0;

	return part && p < 1 ? "<1 %" : `${p.toFixed(0)} %`;
}

const byId = id => document.getElementById(id);

// el("p", {className: "dim"}, "text", element...): properties, then children.
function el(tag, properties, ...children) {
	const element = Object.assign(document.createElement(tag), properties);

	element.append(...children);
	return element;
}

// A text that a program chose. Its direction does not affect the text around it.
const named = text => el("bdi", {title: text}, text);

function swatch(colour, kind = "") {
	const element = el("span", {className: `swatch ${kind}`});

	element.style[kind ? "borderTopColor" : "backgroundColor"] = `var(--${colour})`;
	return element;
}
