/* SPDX-License-Identifier: GPL-2.0-only */
/* The keys of `window`: in which repeats of a phase what was on. */
#include "format/field_tables.h"

static const struct field window_fields[] = {
	{FIELD(window, "phase", phase, FIELD_TEXT), .required = true, .since = 3},
	{FIELD(window, "pid", pid, FIELD_U32), .required = true, .since = 3},
	{FIELD(window, "start_secs", start_ns, FIELD_NS), .required = true, .since = 3},
	{FIELD(window, "end_secs", end_ns, FIELD_NS), .required = true, .since = 3},
	{FIELD(window, "late_secs", late_ns, FIELD_NS), .required = true, .since = 3,
	 .means = "from its beginning until all was on: nothing is known of that part"},
};
const struct record record_window = RECORD(window, "a window", window_fields, NULL);

static const struct field open_fields[] = {
	{FIELD(open, "phase", phase, FIELD_U32), .nullable = true, .since = 3},
	{FIELD(open, "secs", ns, FIELD_NS), .required = true, .since = 3},
};
const struct record record_open = RECORD(open, "what was in windows", open_fields, NULL);

static const struct field windows_fields[] = {
	{FIELD(windows, "schedule", schedule, FIELD_TEXT), .required = true, .since = 3,
	 .means = "which of the phases that `of` matches are windows"},
	{FIELD(windows, "of", of, FIELD_TEXT), .required = true, .since = 3},
	{FIELD(windows, "what", what, FIELD_TEXT), .required = true, .since = 3,
	 .means = "what counts in windows alone: stacks, waits"},
	{FIELD(windows, "on_secs", on_ns, FIELD_NS), .since = 3,
	 .means = "for how long that was on, in windows and around them"},
	{FIELD(windows, "dropped", dropped, FIELD_COUNT), .since = 3,
	 .means = "phases that might have been windows, beyond what there is room for"},
	{LIST(struct recording_windows, "phases", list, FIELD_TABLE, RECORDING_MAX_PHASES),
	 .of = &record_window, .since = 3, .means = "the windows"},
	{LIST(struct recording_windows, "within", within, FIELD_TABLE, RECORDING_MAX_PHASES),
	 .of = &record_open, .since = 3,
	 .means = "for how long a window was open in the whole run, and in phases: sleeps are of "
		  "that time alone; in phases that are not here none was"},
};
const struct record record_windows = RECORD(windows, "windows", windows_fields, NULL);
