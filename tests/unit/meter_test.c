/* SPDX-License-Identifier: GPL-2.0-only */
/* From the model of a machine to metrics: which label set gets what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "audit/metrics/meter.h"
#include "records.h"

enum { ALICE = 1000 };

#define HOUR (3600 * 1000 * MS)

struct test {
	struct machine *m;
	struct meter *meter;
	uint64_t now_ns;
	uint64_t written; /* by the process, as its checkpoints say */
	uint32_t seq;
};

static const char *container(void *context, uint64_t cgroup)
{
	(void)context;
	return cgroup == 7 ? "3f2a8c1d9e4b" : "";
}

/* What a job has left, and for how long. */
static uint64_t job_left, job_ns;

static void limits(void *context, const struct machine_job *job, uint64_t *left, uint64_t *ns)
{
	(void)context;
	assert_non_null(job->root);
	*left = job_left;
	*ns = job_ns;
}

static int set_up(void **state)
{
	static struct test t;
	const struct machine_config machine = {.page_size = RECORDS_PAGE};
	const struct meter_config meter = {
		.metrics = {.labels = METRIC_USUAL_LABELS, .linger_ns = HOUR},
		.page_size = RECORDS_PAGE,
		.container = container,
		.limits = limits,
	};

	t = (struct test){
		.m = machine_new(&machine), .meter = meter_new(&meter), .now_ns = START_NS};
	assert_non_null(t.m);
	assert_non_null(t.meter);
	*state = &t;
	return 0;
}

static int tear_down(void **state)
{
	struct test *t = *state;

	meter_free(t->meter);
	machine_free(t->m);
	return 0;
}

static void feed(struct test *t, union record *r)
{
	struct machine_news news;

	t->now_ns += MS;
	assert_int_equal(machine_feed(t->m, &r->h, &news), 0);
	meter_took(t->meter, &r->h, &news);
}

/* What a process says of itself. */
struct said {
	uint32_t tgid, job, ppid;
	const char *comm, *cmdline;
	uint64_t written, rss, peak; /* bytes; pages */
	uint32_t exit_code, flags;
};

static void say(struct test *t, enum wire_kind kind, const struct said *said)
{
	const char *cmdline = said->cmdline ? said->cmdline : "";
	union record r;

	record_process(&r, kind, t->now_ns,
		       (struct record_who){said->tgid, said->tgid, said->tgid * 10ull}, said->ppid,
		       cmdline, strlen(cmdline));
	r.h.job = (uint16_t)said->job;
	r.process.uid = ALICE;
	r.process.cgroup = 7;
	r.process.flags = said->flags;
	r.process.exit_code = said->exit_code;
	r.process.usage.wchar = said->written;
	r.process.usage.cpu_ns = said->written * 10;
	r.process.usage.minor_faults = said->written * 2;
	r.process.usage.cancelled_write_bytes = said->written;
	r.process.memory.anon = said->rss;
	r.process.memory.peak = said->peak > said->rss ? said->peak : said->rss;
	snprintf(r.process.comm, sizeof(r.process.comm), "%s", said->comm);
	feed(t, &r);
}

/* As of a refresh: the model is told, and no record comes. */
static void is_now(struct test *t, const struct said *said)
{
	union record r;

	record_process(&r, WIRE_FORK, t->now_ns,
		       (struct record_who){said->tgid, said->tgid, said->tgid * 10ull}, said->ppid,
		       "", 0);
	r.h.job = (uint16_t)said->job;
	r.process.uid = ALICE;
	r.process.cgroup = 7;
	r.process.usage.wchar = said->written;
	r.process.usage.cpu_ns = said->written * 10;
	r.process.usage.minor_faults = said->written * 2;
	r.process.usage.cancelled_write_bytes = said->written;
	r.process.memory.anon = said->rss;
	r.process.memory.peak = said->peak > said->rss ? said->peak : said->rss;
	snprintf(r.process.comm, sizeof(r.process.comm), "%s", said->comm);
	machine_tell(t->m, &r.process);
}

static void look(struct test *t)
{
	meter_look(t->meter, t->m, t->now_ns);
}

/* A checkpoint of a job at which its tree has so many pages, and had `peak` since the last one. */
static void hit(struct test *t, enum wire_what what, uint32_t tgid, uint32_t job, const char *name,
		uint64_t pages, uint64_t peak)
{
	union record r;

	record_checkpoint(&r, what, t->seq++, t->now_ns,
			  (struct record_who){tgid, tgid, tgid * 10ull}, name);
	r.h.job = (uint16_t)job;
	record_memory(&r, pages, peak, peak);
	r.cp.own.usage.wchar = t->written;
	feed(t, &r);
}

/* The value of a sample as it is written, or NULL; of the first that begins so. */
static const char *sample(struct test *t, const char *begins)
{
	static char *text;
	size_t len;
	FILE *out;
	char *at, *value;

	free(text);
	out = open_memstream(&text, &len);
	fputc('\n', out);
	metrics_write(meter_metrics(t->meter), true, out);
	fclose(out);
	for (at = text; (at = strchr(at, '\n')) && at[1]; at++) {
		if (strncmp(at + 1, begins, strlen(begins)))
			continue;
		at[1 + strcspn(at + 1, "\n")] = '\0';
		value = strrchr(at + 1, ' ');
		return value + 1;
	}
	return NULL;
}

static void has(struct test *t, const char *begins, const char *expected)
{
	const char *got = sample(t, begins);

	if (!got || strcmp(got, expected))
		fail_msg("%s: expected %s, got %s", begins, expected, got ? got : "nothing");
}

#define LABELS(command, job)                                                                       \
	"{command=\"" command "\",container=\"3f2a8c1d9e4b\",job_name=\"" job "\""
#define WRITTEN(command, job)                                                                      \
	"qprof_process_io_bytes_total" LABELS(command, job) ",direction=\"write\",layer="          \
							    "\"syscall\""

static void counters_keep_what_ended_processes_had_used(void **state)
{
	struct test *t = *state;

	say(t, WIRE_FORK, &(struct said){.tgid = 10, .comm = "sh"});
	say(t, WIRE_FORK, &(struct said){.tgid = 11, .comm = "sh"});
	is_now(t, &(struct said){.tgid = 10, .comm = "sh", .written = 100, .rss = 3});
	is_now(t, &(struct said){.tgid = 11, .comm = "sh", .written = 50, .rss = 4});
	look(t);
	has(t, WRITTEN("sh", ""), "150");
	has(t, "qprof_processes" LABELS("sh", ""), "2");
	has(t, "qprof_process_resident_memory_bytes" LABELS("sh", ""), "28672");
	say(t, WIRE_EXIT, &(struct said){.tgid = 10, .comm = "sh", .written = 120, .peak = 9});
	say(t, WIRE_EXIT, &(struct said){.tgid = 11, .comm = "sh", .written = 50});
	look(t);
	has(t, WRITTEN("sh", ""), "170");
	has(t, "qprof_process_cpu_seconds_total" LABELS("sh", ""), "0.000001700");
	has(t, "qprof_process_minor_faults_total" LABELS("sh", ""), "340");
	has(t, "qprof_process_major_faults_total" LABELS("sh", ""), "0");
	has(t, "qprof_processes" LABELS("sh", ""), "0");
	has(t, "qprof_process_resident_memory_bytes" LABELS("sh", ""), "0");
	has(t, "qprof_process_resident_memory_peak_bytes" LABELS("sh", ""), "36864");
	has(t, "qprof_process_starts_total" LABELS("sh", ""), "2");
	/* The next one of that name goes on. */
	say(t, WIRE_FORK, &(struct said){.tgid = 12, .comm = "sh", .written = 1});
	look(t);
	has(t, WRITTEN("sh", ""), "171");
	has(t, "qprof_io_bytes_total{direction=\"write\",layer=\"syscall\"", "171");
	has(t, "qprof_cpu_seconds_total", "0.000001710");
	has(t, "qprof_minor_faults_total", "342");
	has(t, "qprof_cancelled_write_bytes_total", "171");
}

/* A figure that is read a moment too late is of before; the counter waits until it is overtaken. */
static void counters_never_go_down(void **state)
{
	struct test *t = *state;

	say(t, WIRE_FORK, &(struct said){.tgid = 10, .comm = "sh", .written = 100});
	look(t);
	is_now(t, &(struct said){.tgid = 10, .comm = "sh", .written = 90});
	look(t);
	has(t, WRITTEN("sh", ""), "100");
	is_now(t, &(struct said){.tgid = 10, .comm = "sh", .written = 101});
	look(t);
	has(t, WRITTEN("sh", ""), "101");
}

static void exec_divides_use(void **state)
{
	struct test *t = *state;

	say(t, WIRE_FORK, &(struct said){.tgid = 10, .comm = "python3", .rss = 1000});
	say(t, WIRE_EXEC,
	    &(struct said){.tgid = 10, .comm = "ls", .written = 5, .rss = 2, .peak = 1000});
	/* That it calls itself something else since is not what it executed. */
	is_now(t,
	       &(struct said){.tgid = 10, .comm = "evil", .written = 25, .rss = 3, .peak = 1000});
	look(t);
	has(t, WRITTEN("python3", ""), "5");
	has(t, WRITTEN("ls", ""), "20");
	has(t, "qprof_process_starts_total" LABELS("python3", ""), "1");
	has(t, "qprof_process_starts_total" LABELS("ls", ""), "1");
	has(t, "qprof_process_resident_memory_peak_bytes" LABELS("python3", ""), "4096000");
	/* It was as large as Python only before it was ls. */
	has(t, "qprof_process_resident_memory_peak_bytes" LABELS("ls", ""), "12288");
	say(t, WIRE_EXIT, &(struct said){.tgid = 10, .comm = "ls", .written = 25, .peak = 1001});
	has(t, "qprof_process_resident_memory_peak_bytes" LABELS("ls", ""), "4100096");
}

static void those_from_before_did_not_start(void **state)
{
	struct test *t = *state;
	const struct said one = {
		.tgid = 10, .comm = "sshd", .rss = 7, .flags = WIRE_PROCESS_ATTACHED};
	struct said exec = one;

	say(t, WIRE_FORK, &one);
	t->now_ns -= MS; /* its command line is said of the same moment */
	exec.cmdline = "sshd -D";
	say(t, WIRE_EXEC, &exec);
	look(t);
	has(t, "qprof_processes" LABELS("sshd", ""), "1");
	has(t, "qprof_process_starts_total" LABELS("sshd", ""), "0");
	has(t, "qprof_process_resident_memory_peak_bytes" LABELS("sshd", ""), "28672");
	say(t, WIRE_EXEC, &(struct said){.tgid = 10, .comm = "sshd-session", .written = 3});
	has(t, "qprof_process_starts_total" LABELS("sshd-session", ""), "1");
}

static void processes_that_are_lost_are_dropped(void **state)
{
	struct test *t = *state;

	say(t, WIRE_FORK, &(struct said){.tgid = 10, .comm = "lost"});
	look(t);
	has(t, "qprof_processes" LABELS("lost", ""), "1");
	/* Its end, heard of by the model alone. */
	union record r;
	struct machine_news news;

	record_process(&r, WIRE_EXIT, t->now_ns, (struct record_who){10, 10, 100}, 0, "", 0);
	r.process.uid = ALICE;
	assert_int_equal(machine_feed(t->m, &r.h, &news), 0);
	look(t);
	has(t, "qprof_processes" LABELS("lost", ""), "0");
	/* Its label set has no user any more. */
	t->now_ns += HOUR;
	look(t);
	assert_null(sample(t, "qprof_processes" LABELS("lost", "")));
	/* And one that is met at its end. */
	say(t, WIRE_EXIT, &(struct said){.tgid = 11, .comm = "late", .written = 9});
	has(t, WRITTEN("late", ""), "9");
}

#define JOB(metric)                                                                                \
	metric "{job_name=\"quantize.py\",rule=\"\",container=\"3f2a8c1d9e4b\",uid=\"1000\""
#define STEP(metric, step) metric "{job_name=\"quantize.py\",step=\"" step "\""

static void begin_job(struct test *t)
{
	say(t, WIRE_FORK, &(struct said){.tgid = 10, .comm = "bash"});
	say(t, WIRE_EXEC,
	    &(struct said){.tgid = 10, .comm = "python3", .cmdline = "python3 /opt/quantize.py x"});
	t->written = 10;
	hit(t, WIRE_START, 10, 3, "", 5, 5);
}

static void jobs_are_counted(void **state)
{
	struct test *t = *state;

	begin_job(t);
	hit(t, WIRE_MARK, 10, 3, "loaded", 6, 90);
	is_now(t, &(struct said){.tgid = 10, .job = 3, .comm = "python3", .written = 30, .rss = 6});
	say(t, WIRE_FORK, &(struct said){.tgid = 11, .ppid = 10, .job = 3, .comm = "python3"});
	look(t);
	has(t, JOB("qprof_jobs"), "1");
	has(t, JOB("qprof_job_starts_total"), "1");
	has(t, JOB("qprof_job_checkpoints_total"), "1");
	has(t, JOB("qprof_job_resident_memory_bytes"), "24576");
	has(t, JOB("qprof_job_resident_memory_peak_bytes"), "368640");
	assert_null(sample(t, JOB("qprof_job_memory_left_bytes")));
	assert_null(sample(t, JOB("qprof_job_seconds_to_limit")));
	job_left = 4096;
	look(t);
	has(t, JOB("qprof_job_memory_left_bytes"), "4096");
	assert_null(sample(t, JOB("qprof_job_seconds_to_limit")));
	job_ns = 2500000000;
	look(t);
	has(t, JOB("qprof_job_seconds_to_limit"), "2.500000000");
	job_left = job_ns = 0;
	/* What it had written until its first checkpoint is of no job. */
	has(t, "qprof_processes" LABELS("python3", "quantize.py"), "2");
	has(t, WRITTEN("python3", "quantize.py"), "20");
	has(t, WRITTEN("python3", ""), "10");
	/* At the end of an audit, too, a job runs if its root does. */
	hit(t, WIRE_FINISH, 10, 3, "", 6, 6);
	look(t);
	has(t, JOB("qprof_jobs"), "1");
	say(t, WIRE_EXIT, &(struct said){.tgid = 10, .job = 3, .comm = "python3", .exit_code = 9});
	look(t);
	has(t, JOB("qprof_jobs"), "0");
	say(t, WIRE_EXIT, &(struct said){.tgid = 11, .job = 3, .comm = "python3"});
	look(t);
	has(t,
	    "qprof_job_ends_total{job_name=\"quantize.py\",rule=\"\",container=\"3f2a8c1d9e4b\","
	    "uid=\"1000\",result=\"signal\"",
	    "1");
	has(t,
	    "qprof_job_ends_total{job_name=\"quantize.py\",rule=\"\",container=\"3f2a8c1d9e4b\","
	    "uid=\"1000\",result=\"success\"",
	    "0");
	has(t, JOB("qprof_job_resident_memory_bytes"), "0");
	has(t, JOB("qprof_job_resident_memory_peak_bytes"), "368640");
}

static void phases_have_the_highest_of_what_is_in_them(void **state)
{
	struct test *t = *state;

	begin_job(t);
	hit(t, WIRE_BEGIN, 10, 3, "outer", 10, 10);
	hit(t, WIRE_BEGIN, 10, 3, "inner", 12, 20);
	hit(t, WIRE_METRIC, 10, 3, "loss", 11, 70); /* begins no step: its peak is inner's */
	hit(t, WIRE_END, 10, 3, "inner", 11, 30);
	hit(t, WIRE_END, 10, 3, "outer", 10, 11);
	hit(t, WIRE_BEGIN, 10, 3, "inner", 10, 10);
	hit(t, WIRE_END, 10, 3, "inner", 10, 15);
	hit(t, WIRE_END, 10, 3, "never begun", 10, 99);
	has(t, STEP("qprof_phase_resident_memory_peak_bytes", "inner"), "286720");
	has(t, STEP("qprof_phase_resident_memory_peak_bytes", "outer"), "286720");
	has(t, STEP("qprof_phases_total", "inner"), "2");
	has(t, STEP("qprof_phase_seconds_total", "inner"), "0.003000000");
	has(t, STEP("qprof_phase_seconds_total", "outer"), "0.004000000");
	assert_null(sample(t, STEP("qprof_phases_total", "never begun")));
	assert_null(sample(t, STEP("qprof_phases_total", "Start"))); /* there was no mark */
	has(t, JOB("qprof_job_checkpoints_total"), "7");
}

static void phases_need_not_end_in_order(void **state)
{
	struct test *t = *state;

	begin_job(t);
	hit(t, WIRE_BEGIN, 10, 3, "first", 5, 5);
	hit(t, WIRE_BEGIN, 10, 3, "second", 5, 6);
	hit(t, WIRE_MARK, 10, 3, "here", 5, 50);
	hit(t, WIRE_END, 10, 3, "first", 5, 5);
	hit(t, WIRE_END, 10, 3, "second", 5, 70);
	has(t, STEP("qprof_phase_resident_memory_peak_bytes", "first"), "204800");
	has(t, STEP("qprof_phase_resident_memory_peak_bytes", "second"), "286720");
}

static void phases_between_marks_are_named_after_the_first(void **state)
{
	struct test *t = *state;

	begin_job(t);
	hit(t, WIRE_MARK, 10, 3, "loaded", 6, 40);
	hit(t, WIRE_MARK, 10, 3, "done", 5, 60);
	hit(t, WIRE_FINISH, 10, 3, "", 5, 50);
	has(t, STEP("qprof_phase_resident_memory_peak_bytes", "Start"), "163840");
	has(t, STEP("qprof_phase_resident_memory_peak_bytes", "loaded"), "245760");
	has(t, STEP("qprof_phase_resident_memory_peak_bytes", "done"), "204800");
}

/* No checkpoint tells what a killed job came to after its last one, but points do. */
static void phases_of_a_killed_job_have_its_last_peak(void **state)
{
	struct test *t = *state;
	union record r;

	begin_job(t);
	hit(t, WIRE_BEGIN, 10, 3, "load", 5, 5);
	record_point(&r, t->now_ns, (struct record_who){10, 10, 100}, 300, 300);
	r.h.job = 3;
	feed(t, &r);
	say(t, WIRE_EXIT, &(struct said){.tgid = 10, .job = 3, .comm = "python3", .exit_code = 9});
	has(t, STEP("qprof_phase_resident_memory_peak_bytes", "load"), "1228800");
	has(t, STEP("qprof_phases_total", "load"), "1");
}

static void names_of_phases_are_bounded(void **state)
{
	struct test *t = *state;
	char name[32];

	begin_job(t);
	for (int i = 0; i < METER_STEPS + 50; i++) {
		snprintf(name, sizeof(name), "layer %d", i);
		hit(t, WIRE_BEGIN, 10, 3, name, 5, 5);
		hit(t, WIRE_END, 10, 3, name, 5, 5);
	}
	has(t, STEP("qprof_phases_total", "layer 99"), "1");
	assert_null(sample(t, STEP("qprof_phases_total", "layer 100")));
	has(t, STEP("qprof_phases_total", "other"), "50");
}

static void phases_too_deep_are_left_out(void **state)
{
	struct test *t = *state;

	begin_job(t);
	for (int i = 0; i < 3 * METER_DEPTH; i++)
		hit(t, WIRE_BEGIN, 10, 3, "deep", 5, 5);
	for (int i = 0; i < 3 * METER_DEPTH; i++)
		hit(t, WIRE_END, 10, 3, "deep", 5, 5);
	has(t, STEP("qprof_phases_total", "deep"), "16");
}

static void is_called(const char *comm, const char *cmdline, const char *expected)
{
	char name[METER_NAME_MAX];

	assert_string_equal(meter_job_name(name, comm, cmdline), expected);
}

static void jobs_are_called_after_what_they_run(void **state)
{
	char longest[4096];

	(void)state;
	is_called("quantize", "/usr/bin/quantize model.gguf", "quantize");
	is_called("python3", "python3 /opt/q/quantize.py --model x", "quantize.py");
	is_called("python3.11", "python3.11 -u -W ignore -m llmcompressor.entry a",
		  "llmcompressor.entry");
	is_called("python3", "python3 -c import x", "python3");
	is_called("python3", "python3", "python3");
	is_called("python3", "python3 -", "python3");
	is_called("python3", "python3 -m", "python3");
	is_called("python3", "", "python3");
	is_called("python3", NULL, "python3");
	is_called("bash", "bash -ex run.sh a", "run.sh");
	is_called("bash", "bash -e run.sh a", "run.sh");
	is_called("perl", "perl -e print", "perl");
	is_called("bash", "bash dir/", "bash");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "python3 ", 8);
	{
		char name[METER_NAME_MAX];

		assert_int_equal(strlen(meter_job_name(name, "python3", longest)),
				 METER_NAME_MAX - 1);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(counters_keep_what_ended_processes_had_used),
		TEST(counters_never_go_down),
		TEST(exec_divides_use),
		TEST(those_from_before_did_not_start),
		TEST(processes_that_are_lost_are_dropped),
		TEST(jobs_are_counted),
		TEST(phases_have_the_highest_of_what_is_in_them),
		TEST(phases_need_not_end_in_order),
		TEST(phases_between_marks_are_named_after_the_first),
		TEST(phases_of_a_killed_job_have_its_last_peak),
		TEST(names_of_phases_are_bounded),
		TEST(phases_too_deep_are_left_out),
		TEST(jobs_are_called_after_what_they_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
