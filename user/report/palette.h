/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * palette.h - the colours of pictures, on light and on dark ground. They are from Paul Tol's
 * schemes for colour-blind people (medium contrast, light). The kinds of memory differ in grey,
 * too.
 */
#ifndef QPROF_PALETTE_H
#define QPROF_PALETTE_H

struct palette_colour {
	const char *name, *light, *dark;
};

/* A name is a CSS class and a CSS variable. */
static const struct palette_colour palette[] = {
	{"anon", "#004488", "#7fb0ea"},	     {"shmem", "#ddaa33", "#eecc66"},
	{"file", "#a9c1dc", "#456288"},	     {"unsplit", "#8a94a3", "#77818f"},
	{"swap", "#994455", "#ee99aa"},	     {"cpu", "#2e7d5b", "#44bb99"},
	{"disk-read", "#99bbdd", "#2f5a8a"}, {"disk-write", "#f0b3be", "#7d3a48"},
	{"read", "#004488", "#6699cc"},	     {"write", "#994455", "#ee99aa"},
	{"peak", "#b3261e", "#ff8a80"},	     {"for-cpu", "#c8553d", "#ee8866"},
	{"throttled", "#e8a27c", "#a85a33"}, {"storage", "#004488", "#7fb0ea"},
	{"reclaim", "#ddaa33", "#eecc66"},   {"locks", "#b39ad6", "#7d6aa8"},
	{"slept", "#cfd6e0", "#434c59"},     {"for-gpu", "#55a9c4", "#3f8ca6"},
};

/* For the groups of phases, in turn. Dark text is readable on each of them. */
static const char *const palette_phases[] = {
	"#77aadd", "#eedd88", "#44bb99", "#ffaabb", "#bbcc33", "#ee8866", "#99ddff", "#c3b1e1",
};

enum {
	PALETTE_COLOURS = sizeof(palette) / sizeof(palette[0]),
	PALETTE_PHASES = sizeof(palette_phases) / sizeof(palette_phases[0]),
};

#endif
