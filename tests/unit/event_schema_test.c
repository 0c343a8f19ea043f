/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lines of events against docs/events.schema.json: each key of a line is in the schema, and
 * each key of the schema is in a line. The lines here have all that a line may have.
 */
#include <signal.h>
#include <stdlib.h>

#include "audit/events/event_lines.h"
#include "format/quantities.h"
#include "records.h"
#include "yaml_tree.h"

#define SCHEMA "../../docs/events.schema.json"

enum { JOB_INDEX = 5, SITE_OF_SUMMARIES = 1 };

static const struct cgroup pod = {
	.path = "/k", .container = "c0", .pod = "p0", .runtime = "docker"};
/* What is in a line only where there is any. */
static const struct profile_usage waited = {
	.storage_wait_ns = 1, .lock_wait_ns = 2, .sleep_ns = 3, .gpu_wait_ns = 4};
static const struct event_owner owner = {.uid = 1000, .user = "alice", .cgroup = &pod};

static const char *name_of_site(void *context, uint32_t site)
{
	(void)context;
	return site == SITE_OF_SUMMARIES ? "summary" : "";
}

static void feed(struct machine *m, const union record *r, struct machine_news *news)
{
	assert_int_equal(machine_feed(m, &r->h, news), 0);
}

/* The job has used a GPU. */
static void feed_gpu(struct machine *m, const struct wire_header *h)
{
	static struct wire_gpu gpu;
	struct machine_news news;

	gpu.h = *h;
	gpu.h.kind = WIRE_GPU;
	gpu.h.size = sizeof(gpu);
	gpu.why = WIRE_GPU_CHECKPOINT;
	gpu.tree[WIRE_GPU_ALL].peak = 6000;
	assert_int_equal(machine_feed(m, &gpu.h, &news), 0);
}

/* A job in a phase, with more metrics than a line has and hugetlb memory. */
static struct machine_job *feed_job(struct machine *m)
{
	struct machine_news news;
	union record r;
	char name[8];

	record_process(&r, WIRE_EXEC, START_NS, MAIN, 1, "q", 2);
	r.process.flags = WIRE_PROCESS_CMDLINE_CUT;
	feed(m, &r, &news);
	record_checkpoint(&r, WIRE_START, 0, START_NS, MAIN, "");
	r.h.job = JOB_INDEX;
	feed(m, &r, &news);
	record_checkpoint(&r, WIRE_BEGIN, 1, START_NS, MAIN, "Layer");
	r.h.job = JOB_INDEX;
	r.cp.tree.memory.hugetlb = 512;
	r.cp.own.memory.peak = 1;
	feed(m, &r, &news);
	for (uint32_t i = 0; i <= EVENT_METRICS_MAX; i++) {
		snprintf(name, sizeof(name), "m%02u", i);
		record_checkpoint(&r, WIRE_METRIC, 2 + i, START_NS, MAIN, name);
		r.h.job = JOB_INDEX;
		r.cp.site = SITE_OF_SUMMARIES;
		r.cp.value_state = WIRE_VALUE_UINT;
		r.cp.tree.usage.storage_wait_ns = waited.storage_wait_ns;
		r.cp.tree.usage.lock_wait_ns = waited.lock_wait_ns;
		r.cp.tree.usage.sleep_ns = waited.sleep_ns;
		r.cp.tree.usage.gpu_wait_ns = waited.gpu_wait_ns;
		feed(m, &r, &news);
	}
	feed_gpu(m, &r.h);
	snprintf(news.job->rule, sizeof(news.job->rule), "llama");
	snprintf(news.job->evidence, sizeof(news.job->evidence), "maps x.gguf");
	return news.job;
}

static void write_processes(struct event_lines *l, struct machine_job *job)
{
	struct profile_process process = {
		.tgid = 100,
		.started_ns = 1,
		.cmdline = "q",
		.cmdline_cut = true,
		.flags = WIRE_PROCESS_ATTACHED,
		.memory = {.peak_hugetlb = 4096, .peak_gpu = 5000},
		.usage = waited,
		.end_ns = 2,
	};

	event_process(l, EVENT_PROCESS_START, START_NS, &process, job, &owner);
	event_process(l, EVENT_PROCESS_EXEC, START_NS, &process, job, &owner);
	event_process(l, EVENT_PROCESS_EXIT, START_NS, &process, job, &owner);
	process.exit_code = SIGKILL;
	event_process(l, EVENT_PROCESS_EXIT, START_NS, &process, job, &owner);
}

static void add_files(struct machine *m, struct machine_job *job)
{
	struct job_files *files = calloc(1, sizeof(*files));
	const struct wire_stored sums = {
		.file = {.device = 1, .inode = 2}, .read = 3, .flags = WIRE_STORED_DELETED};
	const struct job_names none = {0};

	assert_non_null(files);
	assert_int_equal(job_files_add(files, &none, &sums), 0);
	machine_set_files(m, job, files);
}

static void add_stacks(struct machine_job *job)
{
	struct job_stacks *stacks = calloc(1, sizeof(*stacks));
	struct job_samples *samples = job_samples_new();

	assert_non_null(stacks);
	assert_non_null(samples);
	for (enum job_stacks_what what = 0; what < JOB_STACKS_WHATS; what++) {
		assert_true(job_samples_add(samples, "f", "/f", what, 2));
		assert_int_equal(job_samples_sum(samples, what, 3, 1, &stacks->of[what]), 0);
	}
	job_samples_free(samples);
	machine_set_stacks(job, stacks);
}

static void write_job(struct event_lines *l, struct machine *m, struct machine_job *job)
{
	struct profile_metric metrics[EVENT_METRICS_MAX + 1] = {0};
	const struct profile_checkpoint step = {
		.name = {.text = "Layer", .cut = true, .unreadable = true},
		.step = "Layer Start",
		.tree = {.hugetlb = 4096, .has_gpu = true, .gpu = 3000, .gpu_step_peak = 4000},
		.tree_usage = waited,
		.metrics = metrics,
		.n_metrics = EVENT_METRICS_MAX + 1,
	};

	for (size_t i = 0; i <= EVENT_METRICS_MAX; i++)
		metrics[i].name = "loss";
	event_job(l, EVENT_JOB_BEGIN, START_NS, job, &owner, false);
	event_checkpoint(l, &step, 1, job);
	assert_int_equal(machine_finish(m, START_NS), 0);
	add_files(m, job);
	add_stacks(job);
	event_job(l, EVENT_JOB_END, START_NS, job, &owner, true);
}

static void write_audit(struct event_lines *l)
{
	const struct run_info info = {.version = "1", .hostname = "host", .kernel = "6"};
	const struct run_warning warning = {"what", "why"};
	const struct quality_count count = {"lost_checkpoints", "", 1};
	const uint64_t before = 0;
	const struct event_audit audit = {.jobs = 1, .written = {1}};

	event_audit_start(l, START_NS, &info, "boot");
	event_quality(l, START_NS, &count, &before, 1);
	event_warning(l, START_NS, &warning);
	event_lost(l, START_NS, 1, 1);
	event_audit_end(l, START_NS, &audit);
}

/* Every kind of line, as long as it can be. To be freed. */
static char *all_lines(void)
{
	const struct machine_config config = {.page_size = RECORDS_PAGE, .site_name = name_of_site};
	struct event_lines l = {.audit = "a1", .page_size = RECORDS_PAGE};
	struct machine *m = machine_new(&config);
	struct machine_job *job;
	char *text = NULL;
	size_t size;

	assert_non_null(m);
	l.out = open_memstream(&text, &size);
	assert_non_null(l.out);
	job = feed_job(m);
	write_audit(&l);
	write_processes(&l, job);
	write_job(&l, m, job);
	fclose(l.out);
	machine_free(m);
	return text;
}

/* ---- The schema ---- */

static char *schema_text(void)
{
	FILE *file = fopen(SCHEMA, "re");
	char *text = calloc(1, 1 << 20);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
	fclose(file);
	return text;
}

/* The schema of the lines that are called so; NULL if there is none. */
static const yaml_node_t *schema_of(yaml_document_t *schema, const char *event)
{
	const yaml_node_t *all = find(schema, yaml_document_get_root_node(schema), "oneOf");

	for (size_t i = 0; i < size(all); i++) {
		const yaml_node_t *one = item(schema, all, i);

		if (!strcmp(scalar(find(schema, one, "title")), event))
			return one;
	}
	return NULL;
}

/* Returns how many keys of the line its schema lacks. */
static unsigned int unknown_keys(yaml_document_t *schema, yaml_document_t *line)
{
	const yaml_node_t *keys = yaml_document_get_root_node(line);
	const char *event = scalar(find(line, keys, "event"));
	const yaml_node_t *one = schema_of(schema, event);
	unsigned int n = 0;

	assert_non_null(one);
	for (size_t i = 0; i < size(keys); i++) {
		if (!find(schema, find(schema, one, "properties"), key_at(line, keys, i))) {
			print_message("%s: no %s in the schema\n", event, key_at(line, keys, i));
			n++;
		}
	}
	return n;
}

/* Whether a line that is called so has the key. */
static bool is_written(const char *lines, const char *event, const char *key)
{
	char called[64], quoted[64];

	snprintf(called, sizeof(called), "{\"event\":\"%s\"", event);
	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	for (const char *line = lines; (line = strstr(line, called)); line++) {
		const char *found = strstr(line, quoted);

		if (found && found < strchr(line, '\n'))
			return true;
	}
	return false;
}

/* Returns how many keys of the schema no line has. */
static unsigned int unwritten_keys(yaml_document_t *schema, const char *lines)
{
	const yaml_node_t *all = find(schema, yaml_document_get_root_node(schema), "oneOf");
	unsigned int n = 0;

	for (size_t i = 0; i < size(all); i++) {
		const yaml_node_t *one = item(schema, all, i);
		const char *event = scalar(find(schema, one, "title"));
		const yaml_node_t *keys = find(schema, one, "properties");

		for (size_t k = 0; k < size(keys); k++) {
			if (is_written(lines, event, key_at(schema, keys, k)))
				continue;
			print_message("%s: no line has %s\n", event, key_at(schema, keys, k));
			n++;
		}
	}
	return n;
}

/* Returns how often lines and schema differ; frees the text. */
static unsigned int differences(char *text)
{
	char *lines = all_lines();
	unsigned int n;
	yaml_document_t schema, line;

	assert_true(parse(text, strlen(text), &schema));
	n = unwritten_keys(&schema, lines);
	for (char *at = lines; *at; at = strchr(at, '\n') + 1) {
		assert_true(parse(at, (size_t)(strchr(at, '\n') - at), &line));
		n += unknown_keys(&schema, &line);
		yaml_document_delete(&line);
	}
	yaml_document_delete(&schema);
	free(lines);
	free(text);
	return n;
}

static void test_schema(void **state)
{
	(void)state;
	assert_int_equal(differences(schema_text()), 0);
}

/* One in a line that has quantities, and one in a line that has none. */
static void test_schema_with_an_unknown_key(void **state)
{
	static const char *const before[] = {"\"boot_id\": {", "\"own_rss_bytes\": {"};

	(void)state;
	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
		char *text = schema_text(), *at = strstr(text, before[i]), *planted;

		assert_non_null(at);
		assert_true(asprintf(&planted, "%.*s\"planted\": {}, %s", (int)(at - text), text,
				     at) > 0);
		free(text);
		assert_int_equal(differences(planted), 1);
	}
}

/* Lines with usage have and require each quantity that an audit has without being asked. */
static void test_quantities_are_required(void **state)
{
	static const char *const events[] = {"process_exit", "job_end", "checkpoint"};
	char *text = schema_text();
	yaml_document_t schema;

	(void)state;
	assert_true(parse(text, strlen(text), &schema));
	for (size_t i = 0; i < sizeof(events) / sizeof(*events) * N_QUANTITIES; i++) {
		const struct quantity *q = &quantities[i % N_QUANTITIES];
		const yaml_node_t *required =
			find(&schema, schema_of(&schema, events[i / N_QUANTITIES]), "required");
		bool found = !q->in_audits || q->if_asked;

		for (size_t k = 0; k < size(required); k++)
			found |= !strcmp(scalar(item(&schema, required, k)), q->event_key);
		assert_true(found);
	}
	yaml_document_delete(&schema);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_schema_with_an_unknown_key),
		cmocka_unit_test(test_quantities_are_required),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
