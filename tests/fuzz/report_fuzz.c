// SPDX-License-Identifier: GPL-2.0-only
/*
 * report_fuzz.c - any bytes as a profile: read, rendered in every format, compared with itself.
 * Besides not crashing, what is read must be what recording.h says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff.h"
#include "report/fits.h"
#include "report/renderer.h"

extern const char *const fuzz_seed_texts[];

const char *const fuzz_seed_texts[] = {
	"qprof:\n  version: \"0.1.0\"\n  schema_version: 1\n  hostname: \"h\"\n  kernel: \"6.18\"\n"
	"  command:\n  - \"./a\"\n  started_at: 1.5\n  backends:\n    rss: \"tp\"\n"
	"memory_usage:\n- step: \"Start\"\n  timestamp: 1.0\n  relative_time_secs: 0.000000\n"
	"  cpu_memory_mb: 1.50\n  disk_read_mb: 0.00\n  disk_write_mb: 0.00\n"
	"  step_peak_memory_mb: 2.00\n  pid: 7\n  tid: 7\n"
	"- step: \"A Start\"\n  timestamp: 2.0\n  relative_time_secs: 1.0\n  cpu_memory_mb: 3.0\n"
	"  metrics:\n    \"loss\": 0.5\n    \"n\": .nan\n"
	"total_quantization_time_seconds: 3.0\npeak_memory_mb: 3.00\n"
	"peak:\n  time_secs: 1.0\n  file_mb: 1.0\n  anon_mb: 2.0\n  shmem_mb: 0.0\n  swap_mb: 0.0\n"
	"  processes:\n  - process: 0\n    pid: 7\n    file_mb: 1.0\n    anon_mb: 2.0\n"
	"    shmem_mb: 0.0\n    swap_mb: 0.0\n"
	"phases:\n- name: \"A\"\n  kind: gap\n  to: \"B\"\n  depth: 1\n  start_secs: 0.5\n"
	"  duration_secs: 1.0\n  start_memory_mb: 1.0\n  end_memory_mb: 2.0\n"
	"  peak_memory_mb: 3.0\n  delta_memory_mb: 1.0\n  closed: false\n"
	"processes:\n- pid: 7\n  ppid: 1\n  comm: \"a\"\n  cmdline: null\n  start_secs: 0.0\n"
	"  end_secs: 2.0\n  exit_signal: 9\n  flags: [target, attached]\n  peak_memory_mb: 3.0\n"
	"timeline:\n  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb, step_peak_mb]\n"
	"  rows:\n  - [0.0, 1.0, 0.5, 0.0, 0.0, null]\n  - [1.0, 1.0, 1.0, 0.0, 0.0, 3.0]\n"
	"process_timeline:\n  columns: [process, time_secs, file_mb, anon_mb, shmem_mb, swap_mb]\n"
	"  rows:\n  - [0, 0.0, 1.0, 0.5, 0.0, 0.0]\n"
	"usage_timeline:\n  columns: [time_secs, io_read_mb, cpu_time_secs]\n"
	"  rows:\n  - [0.0, 0.0, 0.0]\n  - [0.5, 1.0, 0.4]\n  - [0.4, 0.5, 0.5]\n"
	"gpu_timeline:\n  columns: [time_secs, gpu_memory_mb, gpu_peak_memory_mb]\n"
	"  rows:\n  - [0.0, 1.0, 4.0]\n  - [2.0, 0.0, 1.0]\n  - [1.0, 0.5, 2.0]\n"
	"quality:\n  lost_checkpoints: 1\n  warnings:\n  - what: \"a\"\n    why: \"b\"\n"
	"  notes:\n  - \"c\"\n  may_be_counted_more_than_once_mb:\n    shmem: 0.0\n",
	"memory_usage:\n- {step: s, relative_time_secs: 0.0, cpu_memory_mb: 1.0}\n"
	"peak_memory_mb: 1.0\nphases:\n- {name: A, kind: pair, start_secs: 0.0, "
	"duration_secs: 1.0, start_memory_mb: 1.0, end_memory_mb: 1.0, peak_memory_mb: 1.0}\n"
	"stacks:\n  grown_bytes: 8192\n  samples: 3\n  cpu_samples: 2\n  dropped: 1\n"
	"  ends:\n    columns: [end, samples]\n    rows:\n    - [\"whole\", 2]\n"
	"    - [\"unknown code\", 1]\n"
	"  functions:\n    columns: [name, path]\n    rows:\n    - [\"(all)\", \"\"]\n"
	"    - [\"main\", \"/a\"]\n    - [\"\", \"/libc.so.6\"]\n"
	"  calls:\n    columns: [caller, function]\n    rows:\n    - [0, 0]\n    - [0, 1]\n"
	"    - [1, 2]\n"
	"  phase_growth:\n    columns: [phase, bytes]\n    rows:\n    - [0, 4096]\n"
	"  touched:\n    columns: [phase, call, kind, bytes, samples]\n    rows:\n"
	"    - [null, 1, anon, 4096, 1]\n    - [null, 2, file, 4096, 1]\n"
	"    - [0, 2, shmem, 4096, 1]\n"
	"  ran:\n    columns: [phase, call, cpu_ns, samples]\n    rows:\n"
	"    - [null, 1, 4096, 1]\n    - [0, 2, 4096, 1]\n",
	"memory_usage:\n- {step: M Start, timestamp: 1.0, relative_time_secs: 0.0, "
	"cpu_memory_mb: 1.0}\n- {step: x, timestamp: 1.0, relative_time_secs: 1.0, cpu_memory_mb: "
	"1.0}\n- {step: M End, timestamp: 1.0, relative_time_secs: 2.0, cpu_memory_mb: 1.0}\n",
	NULL,
};

static void check_text(const char *text)
{
	if (!text || strlen(text) > RECORDING_MAX_TEXT)
		abort();
}

static void check(const struct recording *r)
{
	const struct recording_phase *phase = recording_peak_phase(r);

	for (size_t i = 0; i < r->n_steps; i++) {
		check_text(r->steps[i].step);
		if (r->steps[i].peak < r->steps[i].rss || r->steps[i].rel_ns > 1ull << 60)
			abort();
	}
	for (size_t i = 0; i < r->n_phases; i++)
		check_text(r->phases[i].name);
	for (size_t i = 0; i < r->n_processes; i++)
		check_text(r->processes[i].comm);
	for (size_t i = 1; i < r->n_points; i++) {
		if (r->points[i].time_ns < r->points[i - 1].time_ns)
			abort();
	}
	for (size_t i = 0; i < r->n_tracks; i++) {
		if (r->tracks[i].process >= r->n_processes)
			abort();
	}
	for (size_t i = 0; i < r->peak.n_shares; i++) {
		if (r->peak.shares[i].process >= r->n_processes)
			abort();
	}
	if (phase && (phase < r->phases || phase >= r->phases + r->n_phases))
		abort();
	if (r->partial != (r->partial_text != NULL))
		abort();
}

static void render_all(const struct recording *r, unsigned int by_name, FILE *out)
{
	for (const struct renderer *const *renderer = renderers; *renderer; renderer++) {
		const struct render_options options = {.source = "-",
						       .width = 80,
						       .top = 3,
						       .order = REPORT_BY_DELTA,
						       .by_name = by_name};
		struct error err = {0};

		if ((*renderer)->render(r, &options, out, &err) && !err.text[0])
			abort();
	}
}

static void compare_with_itself(const struct recording *r, FILE *out)
{
	const struct compare_limit limit = {.is_percent = true, .text = "0%"};
	struct comparison *c = comparison_new();
	struct diff d = {.c = c,
			 .old = "-",
			 .new = "-",
			 .limits = &limit,
			 .n_limits = 1,
			 .width = 80,
			 .all = true};

	if (!c || comparison_add(c, COMPARE_OLD, r) || comparison_add(c, COMPARE_NEW, r) ||
	    diff_judge(&d) || d.n_breaches)
		abort();
	diff_text(&d, out);
	diff_json(&d, out);
	free(d.breaches);
	comparison_free(c);
}

/* What fits fits into more. */
static void judge(const struct recording *r, FILE *out)
{
	enum fits_answer answers[2];

	for (int i = 0; i < 2; i++) {
		struct fits *fits = fits_new(r, (uint64_t)(i + 1) << 20, true);
		struct json_writer j = {.out = out, .pretty = true};

		if (!fits)
			abort();
		fits_text(fits, NULL, 80, i, out);
		json_object(&j);
		fits_json(fits, NULL, &j);
		json_object_end(&j);
		answers[i] = fits_answer(fits);
		fits_free(fits);
	}
	if (answers[0] == FITS_YES && answers[1] != FITS_YES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *out;
	FILE *in = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "re");
	struct error err = {0};
	struct recording r;

	if (!out)
		out = fopen("/dev/null", "we");
	if (!in || !out)
		abort();
	if (recording_read(&r, in, "fuzz", &err)) {
		if (!err.text[0] || r.arena)
			abort();
	} else {
		check(&r);
		render_all(&r, false, out);
		render_all(&r, true, out);
		judge(&r, out);
		compare_with_itself(&r, out);
	}
	recording_free(&r);
	fclose(in);
	return 0;
}
