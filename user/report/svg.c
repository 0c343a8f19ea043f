/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A picture of the run in panels: memory with its phases and the peak, memory of GPUs if it used
 * any, CPU, I/O, and how long phases took. It is for documents, so it has a background of its own
 * and needs no script. A viewer's font decides how wide text is, so the room for text is an
 * estimate.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/layout.h"
#include "report/palette.h"
#include "report/rates.h"
#include "report/renderer.h"
#include "report/select.h"
#include "report/svg_head.h"
#include "base/units.h"

/* In pixels of the picture. */
enum {
	AXIS = 66, /* left of a plot, for the numbers */
	GAP = 24,  /* between panels */
	LANE = 17,
	MEMORY = 230, /* heights of plots */
	GPU = 100,
	SMALL = 150,
	TITLE = 24, /* above a plot */
	KEY = 20,   /* below the title of a narrow plot */
	TICKS = 22, /* below a plot */
	BAR = 20,   /* a phase's duration, and the space to the next */
	MAX_BARS = 8,
	MAX_LANES = 6,
	MAX_RATES = 300,
	MAX_TICKS = 16,
};

struct picture {
	const struct recording *r;
	const struct render_options *options;
	FILE *out;
	struct svg_head head;
	struct layout layout;
	struct rate *rates;
	size_t n_rates;
	uint64_t end_ns; /* end of the time axis, more than 0 */
	double lanes;	 /* height of all lanes */
	const struct recording_phase **longest;
	size_t n_longest;
};

struct plot {
	double left, top, width, height;
	double high; /* the value at its top, more than 0 */
};

static double x_of(const struct picture *p, const struct plot *plot, uint64_t ns)
{
	const double part = (double)ns / (double)p->end_ns;

	return plot->left + (part < 1 ? part : 1) * plot->width;
}

static double y_of(const struct plot *plot, double value)
{
	return plot->top + plot->height * (1 - value / plot->high);
}

/* ---- Words ---- */

static void put_rect(const struct picture *p, double x, double y, double width, double height,
		     const char *attributes)
{
	fprintf(p->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x, y,
		width > 0.5 ? width : 0.5, height, attributes);
}

static void put_rule(const struct picture *p, double x1, double y1, double x2, double y2,
		     const char *class)
{
	fprintf(p->out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n",
		x1, y1, x2, y2, class);
}

/* A swatch and its meaning. Returns where the next swatch goes. */
static double put_key(const struct picture *p, double x, double y, const char *class,
		      const char *text)
{
	char attributes[64];

	snprintf(attributes, sizeof(attributes), "class=\"%s\" rx=\"2\"", class);
	put_rect(p, x, y - 9, 10, 10, attributes);
	svg_text(p->out, x + 14, y, "dim", text, 40);
	return x + 14 + (double)strlen(text) * LETTER + 14;
}

/* ---- Axes ---- */

/* The least of 1, 2 and 5 times a power of ten that is at least value. */
static double round_decimal(double value)
{
	const double power = pow(10, floor(log10(value)));

	for (int i = 0; i < 3; i++) {
		static const double steps[] = {1, 2, 5};

		if (steps[i] * power >= value * 0.999)
			return steps[i] * power;
	}
	return 10 * power;
}

static double round_binary(double value)
{
	return value > 1 ? exp2(ceil(log2(value) - 0.001)) : 1;
}

typedef void (*put_value)(char out[UNITS_TEXT_MAX], double value);

/* Values are multiples of powers of two, so no decimals are needed. */
static void bytes_text(char out[UNITS_TEXT_MAX], double value)
{
	char text[UNITS_TEXT_MAX];
	const char *unit = strchr(units_bytes_for_people(text, (uint64_t)value), ' ');

	snprintf(out, UNITS_TEXT_MAX, "%g%s", strtod(text, NULL), unit);
}

static void rate_text(char out[UNITS_TEXT_MAX], double value)
{
	char text[UNITS_TEXT_MAX];

	bytes_text(text, value);
	snprintf(out, UNITS_TEXT_MAX, "%.20s/s", text);
}

static void cores_text(char out[UNITS_TEXT_MAX], double value)
{
	snprintf(out, UNITS_TEXT_MAX, "%g", value);
}

static void put_axes(const struct picture *p, const struct plot *plot, double step, put_value text)
{
	const double every = round_decimal((double)p->end_ns / (plot->width / 110));
	char label[UNITS_TEXT_MAX];

	for (int i = 0; i < MAX_TICKS && i * step <= plot->high; i++) {
		const double y = y_of(plot, i * step);

		put_rule(p, plot->left, y, plot->left + plot->width, y, "grid");
		text(label, i * step);
		svg_text(p->out, plot->left - 6, y + 4, "dim end", label, 20);
	}
	for (int i = 0; i < MAX_TICKS && i * every <= (double)p->end_ns * 1.001; i++) {
		const double x = x_of(p, plot, (uint64_t)(i * every));

		put_rule(p, x, plot->top + plot->height, x, plot->top + plot->height + 4, "axis");
		svg_text(p->out, x, plot->top + plot->height + 17, "dim middle",
			 units_time_for_people(label, (uint64_t)(i * every)), 20);
	}
	put_rule(p, plot->left, plot->top + plot->height, plot->left + plot->width,
		 plot->top + plot->height, "axis");
}

/* ---- Values that hold until the next one ---- */

/*
 * A line through values in order of time. In each column of pixels it draws the lowest, the highest
 * and the last value: however many values there are, no peak is lost.
 */
struct line {
	const struct picture *p;
	const struct plot *plot;
	bool begun;
	double column, first, low, high, now;
};

static void leave_column(const struct line *line)
{
	if (line->low < line->high)
		fprintf(line->p->out, "V%.1fV%.1fV%.1f", y_of(line->plot, line->low),
			y_of(line->plot, line->high), y_of(line->plot, line->now));
}

static void line_to(struct line *line, uint64_t ns, double value)
{
	const double column = round(x_of(line->p, line->plot, ns) * 2) / 2;

	if (!line->begun) {
		fprintf(line->p->out, "M%.1f %.1f", column, y_of(line->plot, value));
		line->first = column;
		line->low = line->high = value;
		line->begun = true;
	} else if (column > line->column) {
		leave_column(line);
		fprintf(line->p->out, "H%.1f", column);
		line->low = line->high = line->now;
	}
	line->column = line->begun && line->column > column ? line->column : column;
	line->low = fmin(line->low, value);
	line->high = fmax(line->high, value);
	line->now = value;
}

static void end_area(struct line *line, uint64_t ns)
{
	if (!line->begun)
		return;
	line_to(line, ns, line->now);
	leave_column(line);
	fprintf(line->p->out, "V%.1fH%.1fZ", y_of(line->plot, 0), line->first);
}

/* ---- Memory ---- */

/* The memory of a kind, and of all kinds drawn below it, at a point. */
static uint64_t stacked(const struct recording_point *point, int kind)
{
	const uint64_t anon = point->anon, shmem = anon + point->shmem, file = shmem + point->file;

	if (kind == UNSPLIT)
		return recording_point_rss(point);
	return kind == ANON ? anon : kind == SHMEM ? shmem : file;
}

static bool has_kind(const struct picture *p, int kind)
{
	for (size_t i = 0; i < p->r->n_points; i++) {
		const struct recording_point *point = &p->r->points[i];
		const uint64_t below = kind == ANON ? 0 : stacked(point, kind - 1);

		if (stacked(point, kind) - below > p->r->totals.peak_rss / 200)
			return true;
	}
	return false;
}

static void put_kinds(const struct picture *p, const struct plot *plot)
{
	double x = plot->left + 4;

	for (int kind = N_KINDS - 1; kind >= 0; kind--) {
		struct line line = {.p = p, .plot = plot};

		if (!has_kind(p, kind))
			continue;
		/* With an outline: a peak within one pixel has no area. */
		fprintf(p->out, "<path class=\"%s %s-line\" d=\"", svg_kinds[kind].class,
			svg_kinds[kind].class);
		for (size_t i = 0; i < p->r->n_points; i++)
			line_to(&line, p->r->points[i].time_ns,
				(double)stacked(&p->r->points[i], kind));
		end_area(&line, p->end_ns);
		fputs("\"/>\n", p->out);
	}
	for (int kind = 0; kind < N_KINDS; kind++) {
		if (has_kind(p, kind))
			x = put_key(p, x, plot->top - p->lanes - 10, svg_kinds[kind].class,
				    svg_kinds[kind].name);
	}
}

static void put_lane(const struct picture *p, const struct plot *plot, size_t i)
{
	const struct recording_phase *phase = &p->r->phases[i];
	const struct layout_place *place = &p->layout.places[i];
	const double from = x_of(p, plot, phase->start_ns);
	const double to = x_of(p, plot, phase->start_ns + phase->duration_ns);
	const double top = plot->top - p->lanes + place->lane * LANE;
	char attributes[64];

	snprintf(attributes, sizeof(attributes), "fill=\"%s\"%s",
		 palette_phases[place->group % PALETTE_PHASES],
		 phase->kind == PROFILE_PHASE_GAP ? " opacity=\"0.65\"" : "");
	put_rect(p, from, top, to - from - 1, LANE - 2, attributes);
	if (to - from > 7 * LETTER)
		svg_text(p->out, from + 4, top + 11.5, "lane", phase->shown,
			 (unsigned int)((to - from - 6) / LETTER));
}

/* Leaves out a phase that ends less than half a pixel after another in its lane. */
static void put_lanes(const struct picture *p, const struct plot *plot)
{
	double until[MAX_LANES] = {0};

	for (size_t i = 0; i < p->r->n_phases; i++) {
		const struct recording_phase *phase = &p->r->phases[i];
		const uint32_t lane = p->layout.places[i].lane;
		const double to = x_of(p, plot, phase->start_ns + phase->duration_ns);

		if (lane >= MAX_LANES || to < until[lane] + 0.5 ||
		    !render_wants_phase(p->options, phase))
			continue;
		put_lane(p, plot, i);
		until[lane] = to;
	}
}

static void put_peak(const struct picture *p, const struct plot *plot)
{
	char text[2 * UNITS_TEXT_MAX], peak[UNITS_TEXT_MAX], when[UNITS_TEXT_MAX];
	uint64_t ns;
	double x, y, width, from;

	if (!recording_peak_time(p->r, &ns))
		return;
	x = x_of(p, plot, ns);
	y = y_of(plot, (double)p->r->totals.peak_rss);
	snprintf(text, sizeof(text), "Peak %s at %s",
		 units_bytes_for_people(peak, p->r->totals.peak_rss),
		 units_time_for_people(when, ns));
	width = (double)strlen(text) * LETTER + 10;
	from = fmin(fmax(x - width / 2, plot->left), plot->left + plot->width - width);
	put_rule(p, x, plot->top + 18, x, y, "pin");
	fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" class=\"peak\"/>\n", x, y);
	put_rect(p, from, plot->top + 1, width, 18, "class=\"peak\" rx=\"4\"");
	svg_text(p->out, from + width / 2, plot->top + 14, "called middle", text, 60);
}

static void put_memory(const struct picture *p, const struct plot *plot)
{
	svg_text(p->out, plot->left - AXIS, plot->top - p->lanes - 10, "title", "Memory", 20);
	put_axes(p, plot, round_binary(plot->high / 6), bytes_text);
	put_kinds(p, plot);
	put_lanes(p, plot);
	put_peak(p, plot);
}

/* ---- Memory of GPUs ---- */

static bool has_gpu(const struct picture *p)
{
	return p->r->n_gpu_curve && p->r->totals.peak_gpu;
}

/* The highest since a point is drawn at that point, above what there was then. */
static void put_gpu(const struct picture *p, const struct plot *plot)
{
	struct line line = {.p = p, .plot = plot};
	char text[UNITS_TEXT_MAX + 16], peak[UNITS_TEXT_MAX];

	snprintf(text, sizeof(text), "peak %s",
		 units_bytes_for_people(peak, p->r->totals.peak_gpu));
	svg_text(p->out, plot->left - AXIS, plot->top - 10, "title", "GPU memory", 20);
	svg_text(p->out, plot->left + 4 + 3 * GAP, plot->top - 10, "dim", text, 40);
	put_axes(p, plot, round_binary(plot->high / 4), bytes_text);
	fputs("<path class=\"for-gpu for-gpu-line\" d=\"", p->out);
	for (size_t i = 0; i < p->r->n_gpu_curve; i++) {
		const struct recording_gpu_point *point = &p->r->gpu_curve[i];

		line_to(&line, point->time_ns, (double)point->highest);
		line_to(&line, point->time_ns, (double)point->held);
	}
	end_area(&line, p->end_ns);
	fputs("\"/>\n", p->out);
}

/* ---- CPU and I/O ---- */

typedef uint64_t (*usage_of)(const struct profile_usage *usage);

static uint64_t cpu(const struct profile_usage *usage)
{
	return usage->cpu_ns;
}

static uint64_t io_read(const struct profile_usage *usage)
{
	return usage->io_read;
}

static uint64_t io_write(const struct profile_usage *usage)
{
	return usage->io_write;
}

static uint64_t disk_read(const struct profile_usage *usage)
{
	return usage->disk_read;
}

static uint64_t disk_write(const struct profile_usage *usage)
{
	return usage->disk_write;
}

/* Per second. */
static double rate_of(const struct rate *rate, usage_of of)
{
	return (double)of(&rate->usage) / (double)(rate->end_ns - rate->start_ns) * 1e9;
}

static double highest_rate(const struct picture *p, usage_of of)
{
	double high = 0;

	for (size_t i = 0; i < p->n_rates; i++)
		high = fmax(high, rate_of(&p->rates[i], of));
	return high;
}

static void put_rates(const struct picture *p, const struct plot *plot, usage_of of, double unit,
		      const char *class, bool area)
{
	struct line line = {.p = p, .plot = plot};

	fprintf(p->out, "<path class=\"%s\" d=\"", class);
	for (size_t i = 0; i < p->n_rates; i++)
		line_to(&line, p->rates[i].start_ns, rate_of(&p->rates[i], of) / unit);
	if (area) {
		end_area(&line, p->rates[p->n_rates - 1].end_ns);
	} else {
		line_to(&line, p->rates[p->n_rates - 1].end_ns, line.now);
		leave_column(&line);
	}
	fputs("\"/>\n", p->out);
}

static void put_nothing(const struct picture *p, const struct plot *plot, const char *why)
{
	svg_text(p->out, plot->left - AXIS, plot->top + 20, "dim", why, 60);
}

static void put_cpu(const struct picture *p, const struct plot *where)
{
	struct plot plot = *where;

	svg_text(p->out, plot.left - AXIS, plot.top - KEY - 8, "title", "CPU", 20);
	plot.high = highest_rate(p, cpu) / 1e9 * 1.1;
	if (plot.high <= 0) {
		put_nothing(p, &plot, "not in this profile");
		return;
	}
	svg_text(p->out, plot.left - AXIS, plot.top - 8, "dim",
		 rates_have_curve(p->r) ? "cores" : "cores, mean between checkpoints", 60);
	put_axes(p, &plot, round_decimal(plot.high / 4), cores_text);
	put_rates(p, &plot, cpu, 1e9, "cpu", true);
}

static void put_io(const struct picture *p, const struct plot *where)
{
	/* The wide lines first: the narrow ones stay visible on them. */
	static const struct {
		usage_of of;
		const char *line, *swatch, *name;
	} all[] = {
		{disk_read, "storage disk-read-line", "disk-read", "from disk"},
		{disk_write, "storage disk-write-line", "disk-write", "to disk"},
		{io_read, "calls read-line", "read", "read"},
		{io_write, "calls write-line", "write", "written"},
	};
	struct plot plot = *where;
	double x = plot.left - AXIS;

	svg_text(p->out, plot.left - AXIS, plot.top - KEY - 8, "title", "I/O", 20);
	plot.high = 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		plot.high = fmax(plot.high, highest_rate(p, all[i].of) * 1.1);
	if (plot.high <= 0) {
		put_nothing(p, &plot, "none, or not in this profile");
		return;
	}
	put_axes(p, &plot, round_binary(plot.high / 4), rate_text);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (highest_rate(p, all[i].of) <= 0)
			continue;
		put_rates(p, &plot, all[i].of, 1, all[i].line, false);
		x = put_key(p, x - (i ? 6 : 0), plot.top - 8, all[i].swatch, all[i].name);
	}
}

/* ---- How long phases took ---- */

static void put_duration(const struct picture *p, const struct plot *plot,
			 const struct recording_phase *phase, double y)
{
	const double names = plot->width * 0.56, room = plot->width - names - 62;
	const double bar = room * (double)phase->duration_ns / plot->high;
	char attributes[64], text[UNITS_TEXT_MAX];

	svg_text(p->out, plot->left, y + 11, "", phase->shown, (unsigned int)(names / LETTER));
	snprintf(attributes, sizeof(attributes), "fill=\"%s\" rx=\"2\"",
		 palette_phases[p->layout.places[phase - p->r->phases].group % PALETTE_PHASES]);
	put_rect(p, plot->left + names, y, bar, 14, attributes);
	svg_text(p->out, plot->left + names + bar + 6, y + 11, "dim",
		 units_time_for_people(text, phase->duration_ns), 20);
}

static void put_durations(const struct picture *p, const struct plot *where)
{
	const size_t top = p->options->top, most = top && top < MAX_BARS ? top : MAX_BARS;
	struct plot plot = *where;

	svg_text(p->out, plot.left, plot.top - KEY - 8, "title",
		 p->n_longest > most ? "Longest phases" : "Duration of phases", 40);
	if (!p->n_longest) {
		svg_text(p->out, plot.left, plot.top, "dim", "the profile has no phases", 40);
		return;
	}
	plot.high = fmax((double)p->longest[0]->duration_ns, 1);
	for (size_t i = 0; i < p->n_longest && i < most; i++)
		put_duration(p, &plot, p->longest[i], plot.top - KEY + 6 + (double)i * BAR);
}

/* ---- The whole ---- */

static void put_colours(const struct picture *p, bool dark)
{
	for (size_t i = 0; i < PALETTE_COLOURS; i++) {
		const char *colour = dark ? palette[i].dark : palette[i].light;

		fprintf(p->out, ".%s{fill:%s}.%s-line{stroke:%s}", palette[i].name, colour,
			palette[i].name, colour);
		if (!strcmp(palette[i].name, "peak"))
			fprintf(p->out, ".pin{stroke:%s}", colour);
	}
	fputc('\n', p->out);
}

static void put_style(const struct picture *p)
{
	fputs("<style>\n"
	      "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
	      "fill:#1b1f26}\n"
	      ".ground{fill:#fff;stroke:#d9dee6}.dim{fill:#5a6472}.title{font-weight:600}"
	      ".head{font-size:15px;font-weight:600}.big{font-size:19px;font-weight:700}"
	      ".end{text-anchor:end}.middle{text-anchor:middle}.lane{fill:#16181d;font-size:11px}"
	      ".called{fill:#fff;font-weight:600}.grid{stroke:#e7eaef}.axis{stroke:#9aa5b4}"
	      ".pin{stroke-width:1.5}.calls{fill:none;stroke-width:1.5}"
	      ".storage{fill:none;stroke-width:4.5}\n",
	      p->out);
	put_colours(p, false);
	fputs("@media(prefers-color-scheme:dark){\n"
	      "text{fill:#e8eaee}.ground{fill:#1d2127;stroke:#343b46}.dim{fill:#9aa5b4}"
	      ".lane{fill:#16181d}.called{fill:#1d2127}.grid{stroke:#2a3039}"
	      ".axis{stroke:#5a6472}\n",
	      p->out);
	put_colours(p, true);
	fputs("}\n</style>\n", p->out);
}

static void put_all(const struct picture *p)
{
	const double third = (WIDTH - 2 * MARGIN - 2 * GAP) / 3.0;
	const double top = svg_head_height(&p->head) + MARGIN + TITLE + p->lanes;
	const double gpu_top = top + MEMORY + TICKS + GAP + TITLE;
	const double small_top =
		(has_gpu(p) ? gpu_top + GPU : top + MEMORY) + TICKS + GAP + TITLE + KEY;
	const double height = small_top + SMALL + TICKS + MARGIN;
	const struct plot memory = {
		.left = MARGIN + AXIS,
		.top = top,
		.width = WIDTH - 2 * MARGIN - AXIS,
		.height = MEMORY,
		.high = (double)p->r->totals.peak_rss * 1.15 + 1,
	};
	const struct plot gpu = {
		.left = memory.left,
		.top = gpu_top,
		.width = memory.width,
		.height = GPU,
		.high = (double)p->r->totals.peak_gpu * 1.1 + 1,
	};
	struct plot small = {
		.left = MARGIN + AXIS,
		.top = small_top,
		.width = third - AXIS,
		.height = SMALL,
	};

	fprintf(p->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
		"viewBox=\"0 0 %d %.0f\" role=\"img\">\n<title>",
		WIDTH, height, WIDTH, height);
	fputs("Memory, CPU, I/O and phases of a run</title>\n", p->out);
	put_style(p);
	put_rect(p, 0.5, 0.5, WIDTH - 1, height - 1, "class=\"ground\" rx=\"10\"");
	svg_head_put(&p->head, p->r, p->out);
	put_memory(p, &memory);
	if (has_gpu(p))
		put_gpu(p, &gpu);
	put_cpu(p, &small);
	small.left += third + GAP;
	put_io(p, &small);
	small.left += third + GAP - AXIS;
	small.width = third;
	put_durations(p, &small);
	fputs("</svg>\n", p->out);
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct render_options by_duration = *options;
	struct picture p = {.r = r, .options = options, .out = out};
	bool is_ready;

	by_duration.order = REPORT_BY_DURATION;
	p.longest = select_phases(r, &by_duration, &p.n_longest);
	while (p.n_longest && p.longest[0]->kind != p.longest[p.n_longest - 1]->kind)
		p.n_longest--; /* stretches between marks, beside pairs */
	p.rates = rates_over_time(r, MAX_RATES, &p.n_rates);
	p.end_ns = r->totals.duration_ns ? r->totals.duration_ns : 1;
	is_ready =
		p.longest && p.rates && !layout_phases(&p.layout, r) && !svg_head_make(&p.head, r);
	if (is_ready) {
		p.lanes = LANE * (p.layout.lanes < MAX_LANES ? p.layout.lanes : MAX_LANES);
		put_all(&p);
	}
	layout_free(&p.layout);
	free(p.rates);
	free(p.longest);
	return is_ready ? 0 : error_set(err, "not enough memory for the picture");
}

const struct renderer renderer_svg = {
	.name = "svg",
	.extension = ".svg",
	.what = "a picture: memory, CPU, I/O, phases",
	.render = render,
};
