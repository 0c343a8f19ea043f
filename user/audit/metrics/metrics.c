/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/hash.h"
#include "base/text.h"

enum {
	RECENT_SECS = 300, /* a label set is told for at least so long: Prometheus has seen it */
	MAX_RETIRED = 4096,
	VALUE_ROOM = 2 * METRIC_VALUE_MAX, /* each byte may be escaped */
	LABELS_ROOM = METRIC_MAX_LABELS * (VALUE_ROOM + 16),
};

/* ---- What there is ----------------------------------------------------------------------------
 */

/* A row is one value. A row without help belongs to the metric of the row before it. */
static const struct row {
	const char *name, *type, *help;
	const char *labels; /* of this row alone, or NULL */
	enum metric_kind kind;
	bool is_time;	  /* nanoseconds here, seconds in the text */
	bool is_optional; /* 0 is not known, and left out */
	bool is_asked;	  /* only if the user asked what threads wait for */
} rows[] = {
#define ROW(id, kind_, name_, type_, help_, ...)                                                   \
	[id] = {.kind = kind_, .name = name_, .type = type_, .help = help_, __VA_ARGS__}
#define IO(of, name, help)                                                                         \
	ROW(M_##of##_io_read, METRIC_##of, name, "counter", help,                                  \
	    .labels = "direction=\"read\",layer=\"syscall\""),                                     \
		ROW(M_##of##_io_write, METRIC_##of, name, "counter", NULL,                         \
		    .labels = "direction=\"write\",layer=\"syscall\""),                            \
		ROW(M_##of##_disk_read, METRIC_##of, name, "counter", NULL,                        \
		    .labels = "direction=\"read\",layer=\"storage\""),                             \
		ROW(M_##of##_disk_write, METRIC_##of, name, "counter", NULL,                       \
		    .labels = "direction=\"write\",layer=\"storage\"")
/* A quantity has a metric of its own, called by its stem, or its row here. */
#define OWN_BYTES(stem) stem "_bytes_total"
#define OWN_NS(stem)	stem "_seconds_total"
#define OWN_COUNT(stem) stem "_total"
#define ROW_OF(asked, member, stem, unit, words, of, prefix, whose)                                \
	ROW(M_##of##_##member, METRIC_##of, prefix OWN_##unit(stem), "counter",                    \
	    "Of " whose ": " words ".", .is_time = QUANTITY_##unit == QUANTITY_NS,                 \
	    .is_asked = (asked)),
#define ROW_OWN(...)  ROW_OF(false, __VA_ARGS__)
#define ROW_TOLD(...) ROW_OF(true, __VA_ARGS__)
#define ROW_IO(...)
#define ROW_CPU(...)
#define ROW_NONE(...)
#define BESIDE(member, ...)                                                                        \
	ROW(M_PROCESS_##member, METRIC_PROCESS, "qprof_process_" #member "_memory_bytes", "gauge", \
	    "Memory beside resident memory of the processes that are alive, summed: " #member      \
	    "."),
#define OWN(member, stem, unit, w, g, words, c, compared, row, s, m, ...)                          \
	ROW_##compared(member, stem, unit, words, __VA_ARGS__)

	ROW(M_AUDIT_START, METRIC_MACHINE, "qprof_audit_start_time_seconds", "gauge",
	    "When the audit began, in Unix time.", .is_time = true),
	ROW(M_AUDIT_RUNNING, METRIC_MACHINE, "qprof_audit_running", "gauge",
	    "1 while the audit runs, 0 in the file that it leaves."),
	ROW(M_UPDATED, METRIC_MACHINE, "qprof_update_time_seconds", "gauge",
	    "When these figures were taken, in Unix time.", .is_time = true),
	IO(MACHINE, "qprof_io_bytes_total",
	   "Bytes that all processes read and wrote: through calls, and from and to storage."),
	ROW(M_MACHINE_disk_write_cancelled, METRIC_MACHINE, "qprof_cancelled_write_bytes_total",
	    "counter", "Bytes written to storage that were truncated before they got there."),
	ROW(M_MACHINE_cpu_ns, METRIC_MACHINE, "qprof_cpu_seconds_total", "counter",
	    "CPU time of all processes.", .is_time = true),
	USAGE_QUANTITIES(OWN, MACHINE, "qprof_", "all processes")
		ROW(M_DEVICE_READ, METRIC_MACHINE, "qprof_device_io_bytes_total", "counter",
		    "Bytes that block devices count themselves.", .labels = "direction=\"read\""),
	ROW(M_DEVICE_WRITTEN, METRIC_MACHINE, "qprof_device_io_bytes_total", "counter", NULL,
	    .labels = "direction=\"write\""),
	ROW(M_OVERFLOWS, METRIC_MACHINE, "qprof_overflows_total", "counter",
	    "Times that something was counted in other, as there was no room for its labels."),

	ROW(M_SELF_CPU, METRIC_SELF, "process_cpu_seconds_total", "counter",
	    "CPU time of qprof-bpf itself.", .is_time = true),
	ROW(M_SELF_RSS, METRIC_SELF, "process_resident_memory_bytes", "gauge",
	    "Resident memory of qprof-bpf itself."),
	ROW(M_SELF_START, METRIC_SELF, "process_start_time_seconds", "gauge",
	    "When qprof-bpf was started, in Unix time.", .is_time = true),

	ROW(M_BUILD, METRIC_BUILD, "qprof_build_info", "gauge",
	    "1; the labels say which version runs on which kernel."),

	ROW(M_LOST, METRIC_LOSS, "qprof_lost_events_total", "counter",
	    "What was lost, left out or is doubtful, by kind."),

	ROW(M_PROCESSES, METRIC_PROCESS, "qprof_processes", "gauge", "Processes that are alive."),
	ROW(M_PROCESS_RSS, METRIC_PROCESS, "qprof_process_resident_memory_bytes", "gauge",
	    "Resident memory of the processes that are alive, summed."),
	ROW(M_PROCESS_PEAK, METRIC_PROCESS, "qprof_process_resident_memory_peak_bytes", "gauge",
	    "Highest resident memory of any one process since the audit began."),
	MEMORY_BESIDE(BESIDE, )
		IO(PROCESS, "qprof_process_io_bytes_total",
		   "Bytes that processes read and wrote: through calls, and from and to storage."),
	ROW(M_PROCESS_cpu_ns, METRIC_PROCESS, "qprof_process_cpu_seconds_total", "counter",
	    "CPU time of processes.", .is_time = true),
	USAGE_QUANTITIES(OWN, PROCESS, "qprof_process_", "processes")
		ROW(M_PROCESS_STARTS, METRIC_PROCESS, "qprof_process_starts_total", "counter",
		    "Processes that were forked with this command, or executed it."),

	ROW(M_JOBS, METRIC_JOB, "qprof_jobs", "gauge", "Jobs that run."),
	ROW(M_JOB_RSS, METRIC_JOB, "qprof_job_resident_memory_bytes", "gauge",
	    "Resident memory of the trees of the jobs that run, summed."),
	ROW(M_JOB_PEAK, METRIC_JOB, "qprof_job_resident_memory_peak_bytes", "gauge",
	    "Highest resident memory of the tree of any one job since the audit began."),
	ROW(M_JOB_GPU, METRIC_JOB, "qprof_job_gpu_memory_bytes", "gauge",
	    "Memory on GPUs of the jobs that run, summed.", .is_optional = true),
	ROW(M_JOB_GPU_PEAK, METRIC_JOB, "qprof_job_gpu_memory_peak_bytes", "gauge",
	    "Most memory on GPUs of any one job since the audit began.", .is_optional = true),
	ROW(M_JOB_LEFT, METRIC_JOB, "qprof_job_memory_left_bytes", "gauge",
	    "Least that a job that runs has left until its nearest memory limit.",
	    .is_optional = true),
	ROW(M_JOB_TO_LIMIT, METRIC_JOB, "qprof_job_seconds_to_limit", "gauge",
	    "Time until a job that grows has no memory left, from half of the way on.",
	    .is_time = true, .is_optional = true),
	ROW(M_JOB_STARTS, METRIC_JOB, "qprof_job_starts_total", "counter", "Jobs that began."),
	ROW(M_JOB_SUCCESSES, METRIC_JOB, "qprof_job_ends_total", "counter",
	    "Jobs whose first process has ended: with status 0, with another, by a signal.",
	    .labels = "result=\"success\""),
	ROW(M_JOB_FAILURES, METRIC_JOB, "qprof_job_ends_total", "counter", NULL,
	    .labels = "result=\"failure\""),
	ROW(M_JOB_SIGNALS, METRIC_JOB, "qprof_job_ends_total", "counter", NULL,
	    .labels = "result=\"signal\""),
	ROW(M_JOB_CHECKPOINTS, METRIC_JOB, "qprof_job_checkpoints_total", "counter",
	    "Checkpoints that jobs came to."),

	ROW(M_STEP_PEAK, METRIC_STEP, "qprof_phase_resident_memory_peak_bytes", "gauge",
	    "Highest resident memory of a job's tree in this phase since the audit began."),
	ROW(M_STEP_TIME, METRIC_STEP, "qprof_phase_seconds_total", "counter",
	    "Time that jobs spent in this phase, once it has ended.", .is_time = true),
	ROW(M_STEP_RUNS, METRIC_STEP, "qprof_phases_total", "counter",
	    "Times that a phase of this name has ended."),
#undef OWN
#undef BESIDE
#undef IO
#undef ROW
};
_Static_assert(sizeof(rows) / sizeof(*rows) == METRICS_N, "rows");

static const struct kind {
	const char *labels[METRIC_MAX_LABELS + 1];
	unsigned int may_leave[METRIC_MAX_LABELS]; /* enum metric_label; 0: always there */
	const char *other[METRIC_MAX_LABELS];	   /* the values where there is no room */
	bool is_bounded;
	enum metric first;
	size_t n; /* rows */
} kinds[METRIC_KINDS] = {
	[METRIC_MACHINE] = {.first = M_AUDIT_START, .n = M_SELF_CPU - M_AUDIT_START},
	[METRIC_SELF] = {.first = M_SELF_CPU, .n = M_BUILD - M_SELF_CPU},
	[METRIC_BUILD] = {.labels = {"version", "kernel"},
			  .other = {"", ""},
			  .first = M_BUILD,
			  .n = M_LOST - M_BUILD},
	[METRIC_LOSS] = {.labels = {"kind"},
			 .other = {"other"},
			 .first = M_LOST,
			 .n = M_PROCESSES - M_LOST},
	[METRIC_PROCESS] = {.labels = {"command", "container", "job_name", "pid"},
			    .may_leave = {METRIC_COMMAND, METRIC_CONTAINER, METRIC_JOB_NAME,
					  METRIC_PID},
			    .other = {"other", "", "", ""},
			    .is_bounded = true,
			    .first = M_PROCESSES,
			    .n = M_JOBS - M_PROCESSES},
	[METRIC_JOB] = {.labels = {"job_name", "rule", "container", "uid"},
			.may_leave = {0, 0, METRIC_CONTAINER, 0},
			.other = {"other", "", "", ""},
			.is_bounded = true,
			.first = M_JOBS,
			.n = M_STEP_PEAK - M_JOBS},
	[METRIC_STEP] = {.labels = {"job_name", "step"},
			 .other = {"other", "other"},
			 .is_bounded = true,
			 .first = M_STEP_PEAK,
			 .n = METRICS_N - M_STEP_PEAK},
};
_Static_assert(M_SELF_CPU - M_AUDIT_START <= METRIC_MAX_ROWS, "rows of the machine");
_Static_assert(M_JOBS - M_PROCESSES <= METRIC_MAX_ROWS, "rows of processes");
_Static_assert(M_STEP_PEAK - M_JOBS <= METRIC_MAX_ROWS, "rows of jobs");

/* Sets names[] to the names in `name="value",name="value"`, cut out in room. */
static void names_in(const char *labels, const char *names[], char *room, size_t size)
{
	char *rest = room, *label;

	snprintf(room, size, "%s", labels);
	while ((label = strsep(&rest, ","))) {
		label[strcspn(label, "=")] = '\0';
		*names++ = label;
	}
}

bool metrics_describe(size_t i, struct metric_info *info)
{
	size_t n = 0;

	for (size_t at = 0; at < METRICS_N; at++) {
		const struct row *row = &rows[at];

		if (!row->help || i--)
			continue;
		*info = (struct metric_info){
			.name = row->name, .type = row->type, .help = row->help};
		for (; kinds[row->kind].labels[n]; n++)
			info->labels[n] = kinds[row->kind].labels[n];
		if (row->labels)
			names_in(row->labels, info->labels + n, info->room, sizeof(info->room));
		return true;
	}
	return false;
}

/* ---- Label sets -------------------------------------------------------------------------------
 */

/* The user whose processes took the room. */
struct owner {
	uint32_t uid;
	size_t holders;	  /* label sets, told or remembered, and callers of owner_get() */
	size_t n_series;  /* told */
	size_t n_retired; /* label sets that are remembered */
	UT_hash_handle hh;
};

struct series {
	enum metric_kind kind;
	struct owner *owner; /* the first who used it since it is told, or NULL */
	size_t users;
	bool told;			      /* or only remembered */
	uint64_t idle_ns;		      /* since when nobody uses it */
	struct series *prev, *next;	      /* in the list of its kind, or of those remembered */
	struct series *idle_prev, *idle_next; /* in the list of unused ones, the oldest first */
	UT_hash_handle hh;
	uint64_t values[METRIC_MAX_ROWS];
	char key[]; /* a byte for the kind, then the labels as text */
};

struct metrics {
	struct metrics_config config;
	struct series *by_key;
	struct owner *owners;
	struct series *told[METRIC_KINDS];
	struct series *other[METRIC_KINDS];
	struct series *idle, *retired;
	size_t n_series, n_retired;
};

static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

/*
 * Writes a value with escapes, and U+FFFD for what is not UTF-8 or would steer a terminal, to
 * out[VALUE_ROOM + 1]. Returns its bytes.
 */
static size_t escape(char *out, const char *value)
{
	static const char replacement[] = "\xef\xbf\xbd";
	const size_t len = strlen(value);
	size_t used = 0, taken = 0, n;
	uint32_t code;

	for (size_t i = 0; i < len; i += n ? n : 1) {
		const char *from = value + i;
		char escaped[2] = {'\\'};
		size_t want;

		n = text_char(from, len - i, &code);
		want = n;
		if (n && strchr("\\\"\n", *from)) {
			escaped[1] = *from == '\n' ? 'n' : *from;
			from = escaped;
			want = 2;
		} else if (!n || is_control(code)) {
			from = replacement;
			want = sizeof(replacement) - 1;
		}
		taken += want == 2 && from == escaped ? 1 : want;
		if (taken > METRIC_VALUE_MAX)
			break;
		memcpy(out + used, from, want);
		used += want;
	}
	out[used] = '\0';
	return used;
}

/* Writes the key of a label set to key[LABELS_ROOM]. All label sets of a kind have the same labels:
 * an empty label is none to Prometheus, and no two may be the same. */
static void write_key(const struct metrics *m, char *key, enum metric_kind kind,
		      const char *const *values)
{
	const struct kind *k = &kinds[kind];
	char *at = key;

	*at++ = (char)('A' + kind);
	for (size_t i = 0; k->labels[i]; i++) {
		if (k->may_leave[i] && !(m->config.labels & k->may_leave[i]))
			continue;
		if (at > key + 1)
			*at++ = ',';
		at = stpcpy(stpcpy(at, k->labels[i]), "=\"");
		at += escape(at, values[i]);
		*at++ = '"';
	}
	*at = '\0';
}

static struct series *find(const struct metrics *m, const char *key)
{
	struct series *found;

	HASH_FIND_STR(m->by_key, key, found);
	return found;
}

/* Adds a label set that is not told yet. Returns NULL when out of memory. */
static struct series *add(struct metrics *m, enum metric_kind kind, const char *key)
{
	const size_t len = strlen(key);
	struct series *series = calloc(1, sizeof(*series) + len + 1);

	if (!series)
		return NULL;
	series->kind = kind;
	memcpy(series->key, key, len + 1);
	HASH_ADD_KEYPTR(hh, m->by_key, series->key, len, series);
	if (series->hh.tbl)
		return series;
	free(series);
	return NULL;
}

static bool is_left_out(const struct metrics *m, const struct row *row)
{
	return row->is_asked && !m->config.waits;
}

/* How many series a label set of that kind has, where they are bounded. */
static size_t weight(const struct metrics *m, enum metric_kind kind)
{
	const struct row *first = &rows[kinds[kind].first];
	size_t n = 0;

	for (size_t i = 0; kinds[kind].is_bounded && i < kinds[kind].n; i++)
		n += !is_left_out(m, first + i);
	return n;
}

/* owner_put() must follow. Returns NULL when out of memory. */
static struct owner *owner_get(struct metrics *m, uint32_t uid)
{
	struct owner *owner;

	HASH_FIND(hh, m->owners, &uid, sizeof(uid), owner);
	if (owner) {
		owner->holders++;
		return owner;
	}
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	owner->uid = uid;
	owner->holders = 1;
	HASH_ADD(hh, m->owners, uid, sizeof(owner->uid), owner);
	if (owner->hh.tbl)
		return owner;
	free(owner);
	return NULL;
}

static void owner_put(struct metrics *m, struct owner *owner)
{
	if (--owner->holders)
		return;
	HASH_DEL(m->owners, owner);
	free(owner);
}

/* Tells a label set, which has the owner from now on. */
static void tell(struct metrics *m, struct series *series, struct owner *owner)
{
	series->told = true;
	series->owner = owner;
	DL_APPEND(m->told[series->kind], series);
	if (!owner)
		return;
	owner->n_series += weight(m, series->kind);
	m->n_series += weight(m, series->kind);
}

static void leave_idle(struct metrics *m, struct series *series)
{
	DL_DELETE2(m->idle, series, idle_prev, idle_next);
	series->idle_prev = series->idle_next = NULL;
}

/* Takes a label set out of the list of those remembered. */
static void recall(struct metrics *m, struct series *series)
{
	DL_DELETE(m->retired, series);
	m->n_retired--;
	series->owner->n_retired--;
	owner_put(m, series->owner);
}

/* Forgets the oldest remembered label set of the user who has most. */
static void forget_one(struct metrics *m)
{
	const struct owner *most = m->owners;
	struct series *oldest = m->retired;

	for (const struct owner *at = m->owners; at; at = at->hh.next)
		if (at->n_retired > most->n_retired)
			most = at;
	while (oldest->next && oldest->owner != most)
		oldest = oldest->next;
	recall(m, oldest);
	HASH_DEL(m->by_key, oldest);
	free(oldest);
}

/* Stops telling a label set, and remembers it so that it can go on. */
static void retire(struct metrics *m, struct series *series)
{
	leave_idle(m, series);
	DL_DELETE(m->told[series->kind], series);
	series->told = false;
	m->n_series -= weight(m, series->kind);
	series->owner->n_series -= weight(m, series->kind);
	series->owner->n_retired++;
	DL_APPEND(m->retired, series);
	if (++m->n_retired > MAX_RETIRED)
		forget_one(m);
}

/* A user gets no more than is left for all others. */
static bool has_room(const struct metrics *m, const struct owner *owner, size_t more)
{
	return m->n_series + more <= m->config.max_series &&
	       owner->n_series + more <= m->config.max_series - m->n_series;
}

static bool is_idle_for(const struct series *series, uint64_t ns, uint64_t now_ns)
{
	return now_ns >= series->idle_ns && now_ns - series->idle_ns >= ns;
}

/* Returns the label set that was unused for longest, of users with no fewer series; or NULL. */
static struct series *to_give_way(const struct metrics *m, const struct owner *owner,
				  uint64_t now_ns)
{
	for (struct series *at = m->idle; at; at = at->idle_next) {
		if (!is_idle_for(at, RECENT_SECS * 1000000000ull, now_ns))
			return NULL;
		if (at->owner->n_series >= owner->n_series)
			return at;
	}
	return NULL;
}

static bool make_room(struct metrics *m, const struct owner *owner, size_t more, uint64_t now_ns)
{
	while (!has_room(m, owner, more)) {
		struct series *series = to_give_way(m, owner, now_ns);

		if (!series)
			return false;
		retire(m, series);
	}
	return true;
}

static struct series *use(struct metrics *m, struct series *series)
{
	if (series->idle_prev)
		leave_idle(m, series);
	series->users++;
	return series;
}

static struct series *use_other(struct metrics *m, enum metric_kind kind)
{
	series_add(m->other[METRIC_MACHINE], M_OVERFLOWS, 1);
	return use(m, m->other[kind]);
}

/* Tells a label set that is new or remembered. Returns NULL without room or memory. */
static struct series *begin(struct metrics *m, enum metric_kind kind, const char *key,
			    struct owner *owner, uint64_t now_ns)
{
	struct series *series;

	if (kinds[kind].is_bounded && !make_room(m, owner, weight(m, kind), now_ns))
		return NULL;
	series = find(m, key);
	if (series)
		recall(m, series);
	else
		series = add(m, kind, key);
	if (series)
		tell(m, series, owner);
	return series;
}

struct series *series_take(struct metrics *m, enum metric_kind kind, const char *const *values,
			   uint32_t uid, uint64_t now_ns)
{
	char key[LABELS_ROOM];
	struct series *series;
	struct owner *owner;

	write_key(m, key, kind, values);
	series = find(m, key);
	if (series && series->told)
		return use(m, series);
	owner = owner_get(m, uid);
	series = owner ? begin(m, kind, key, owner, now_ns) : NULL;
	if (series)
		return use(m, series);
	if (owner)
		owner_put(m, owner);
	return use_other(m, kind);
}

void series_drop(struct metrics *m, struct series *series, uint64_t now_ns)
{
	if (--series->users || series == m->other[series->kind])
		return;
	series->idle_ns = now_ns;
	DL_APPEND2(m->idle, series, idle_prev, idle_next);
}

bool series_known(const struct metrics *m, enum metric_kind kind, const char *const *values)
{
	char key[LABELS_ROOM];

	write_key(m, key, kind, values);
	return find(m, key);
}

struct series *metrics_only(struct metrics *m, enum metric_kind kind)
{
	return m->other[kind];
}

void metrics_tidy(struct metrics *m, uint64_t now_ns)
{
	while (m->idle && is_idle_for(m->idle, m->config.linger_ns, now_ns))
		retire(m, m->idle);
}

size_t metrics_n_series(const struct metrics *m)
{
	return m->n_series;
}

static uint64_t *value_of(struct series *series, enum metric metric)
{
	return &series->values[metric - kinds[series->kind].first];
}

void series_add(struct series *series, enum metric metric, uint64_t more)
{
	*value_of(series, metric) += more;
}

void series_set(struct series *series, enum metric metric, uint64_t value)
{
	*value_of(series, metric) = value;
}

void series_raise(struct series *series, enum metric metric, uint64_t value)
{
	if (value > *value_of(series, metric))
		*value_of(series, metric) = value;
}

uint64_t series_value(const struct series *series, enum metric metric)
{
	return series->values[metric - kinds[series->kind].first];
}

void metrics_clear(struct metrics *m, enum metric metric)
{
	for (struct series *at = m->told[rows[metric].kind]; at; at = at->next)
		series_set(at, metric, 0);
}

/* ---- Life -------------------------------------------------------------------------------------
 */

/* Tells `other` of each kind from the start, so that every metric is there. */
static bool add_others(struct metrics *m)
{
	char key[LABELS_ROOM];

	for (int kind = 0; kind < METRIC_KINDS; kind++) {
		write_key(m, key, (enum metric_kind)kind, kinds[kind].other);
		m->other[kind] = add(m, (enum metric_kind)kind, key);
		if (!m->other[kind])
			return false;
		if (kind != METRIC_BUILD && kind != METRIC_LOSS) /* without an `other` */
			tell(m, m->other[kind], NULL);
	}
	return true;
}

struct metrics *metrics_new(const struct metrics_config *config)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->config = *config;
	if (!m->config.max_series)
		m->config.max_series = METRICS_SERIES;
	if (add_others(m))
		return m;
	metrics_free(m);
	return NULL;
}

void metrics_free(struct metrics *m)
{
	struct series *series, *next;
	struct owner *owner, *next_owner;

	if (!m)
		return;
	owner = m->owners;
	HASH_CLEAR(hh, m->owners);
	for (; owner; owner = next_owner) {
		next_owner = owner->hh.next;
		free(owner);
	}
	series = m->by_key;
	HASH_CLEAR(hh, m->by_key);
	for (; series; series = next) {
		next = series->hh.next;
		free(series);
	}
	free(m);
}

/* ---- Text -------------------------------------------------------------------------------------
 */

static void write_value(const struct row *row, uint64_t value, FILE *out)
{
	if (row->is_time)
		fprintf(out, " %" PRIu64 ".%09" PRIu64 "\n", value / 1000000000,
			value % 1000000000);
	else
		fprintf(out, " %" PRIu64 "\n", value);
}

static void write_row(const struct metrics *m, enum metric metric, FILE *out)
{
	const struct row *row = &rows[metric];

	for (const struct series *at = m->told[row->kind]; at; at = at->next) {
		const char *labels = at->key + 1, *more = row->labels ? row->labels : "";

		if (row->is_optional && !series_value(at, metric))
			continue;

		fputs(row->name, out);
		if (*labels || *more)
			fprintf(out, "{%s%s%s}", labels, *labels && *more ? "," : "", more);
		write_value(row, series_value(at, metric), out);
	}
}

void metrics_write(const struct metrics *m, bool self, FILE *out)
{
	for (int metric = 0; metric < METRICS_N; metric++) {
		const struct row *row = &rows[metric];

		if ((row->kind == METRIC_SELF && !self) || is_left_out(m, row))
			continue;
		if (row->help)
			fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help,
				row->name, row->type);
		write_row(m, (enum metric)metric, out);
	}
}
