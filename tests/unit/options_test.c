/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values that options accept and refuse, by type; whole command lines, parsed in a child since
 * errors exit; and the tables of all commands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/commands.h"

#define HUGE "18446744073709551616" /* 2^64 */

struct values {
	bool flag, follow;
	unsigned int level, count, choice, choices;
	uint64_t ns, bytes;
	const char *text, *path;
	struct texts texts;
	struct pids pids;
	char *const *argv;
};

static const struct choice colours[] = {{"red", 1}, {"green", 2}, {"blue", 4}, {0}};

static bool has_colon(const char *text)
{
	return strchr(text, ':');
}

static const struct command_option rows[] = {
	HEADING("All types:"),
	{'f', "flag", NULL, "", OPT_FLAG, INTO(struct values, flag)},
	{0, "no-follow", NULL, "", OPT_NO_FLAG, INTO(struct values, follow)},
	{'l', "level", NULL, "", OPT_SET, INTO(struct values, level), .set = 7},
	{'c', "count", "N", "", OPT_COUNT, INTO(struct values, count), .least = 2, .most = 10},
	{0, "any-count", "N", "", OPT_COUNT, INTO(struct values, count)},
	{'d', "duration", "TIME", "", OPT_DURATION, INTO(struct values, ns)},
	{0, "interval", "TIME", "", OPT_DURATION, INTO(struct values, ns), .least = 1000000},
	{0, "size", "SIZE", "", OPT_SIZE, INTO(struct values, bytes), .least = 1024},
	{'t', "text", "TEXT", "", OPT_TEXT, INTO(struct values, text)},
	{'o', "path", "FILE", "", OPT_PATH, INTO(struct values, path)},
	{0, "texts", "A:B", "", OPT_TEXTS, INTO(struct values, texts), .accepts = has_colon,
	 .wrong = "say A:B"},
	{0, "paths", "FILE", "", OPT_PATHS, INTO(struct values, texts)},
	{0, "colour", "COLOUR", "", OPT_CHOICE, INTO(struct values, choice), .choices = colours,
	 .if_none = "green"},
	{0, "colours", "LIST", "", OPT_CHOICES, INTO(struct values, choices), .choices = colours},
	{'p', "pid", "PID", "", OPT_PIDS, INTO(struct values, pids), .replaces_arguments = true},
	{0, "one-pid", "PID", "", OPT_PIDS, INTO(struct values, pids), .most = 1},
	{0},
};

static int no_run(int argc, char **argv)
{
	return argc > 1 && argv[1] ? 42 : 43;
}

static const struct command other = {.name = "other", .run = no_run};

static const struct command_option more_rows[] = {
	{'a', "all", NULL, "", OPT_COMMAND, .command = &other},
	{'V', "version", NULL, "Print the version", .type = OPT_VERSION},
	{0},
};

static const struct command command = {
	.name = "test",
	.title = "qprof-bpf test",
	.usage = "-p PID\n-- COMMAND",
	.doc = "A test.",
	.tables = (const struct option_table[]){{rows, 0}, {more_rows, 0}, {0}},
	.arguments = {ARGUMENTS_COMMAND, .least = 1, .at = offsetof(struct values, argv),
		      .too_few = "say what", .too_many = "one of both"},
};

static const struct command_option *row_named(const char *name)
{
	const struct command_option *option;
	size_t at;

	for (size_t i = 0; (option = command_option(&command, i, &at)); i++)
		if (option->name && !strcmp(option->name, name))
			return option;
	fail_msg("no row %s", name);
	return NULL;
}

static void accepted(struct values *v, const char *name, const char *text)
{
	struct error err = {0};

	if (option_set(row_named(name), text, v, &err))
		fail_msg("--%s %s: %s", name, text, err.text);
}

static void refused(const char *name, const char *text, const char *message)
{
	struct values v = {0};
	struct error err = {0};

	if (!option_set(row_named(name), text, &v, &err))
		fail_msg("--%s '%s' was accepted", name, text);
	assert_string_equal(err.text, message);
	assert_int_equal(err.status, 125);
	free(v.texts.items);
	free(v.pids.items);
}

#define REFUSED_ALL(name, shown, why, ...)                                                         \
	do {                                                                                       \
		static const char *const texts_[] = {__VA_ARGS__};                                 \
		char message_[512];                                                                \
                                                                                                   \
		for (size_t i_ = 0; i_ < sizeof(texts_) / sizeof(*texts_); i_++) {                 \
			snprintf(message_, sizeof(message_), "%s%s: %s", shown,                    \
				 *texts_[i_] ? texts_[i_] : "''", why);                            \
			refused(name, texts_[i_], message_);                                       \
		}                                                                                  \
	} while (0)

static void flags_take_no_value(void **state)
{
	struct values v = {.follow = true, .level = 1};

	(void)state;
	accepted(&v, "flag", NULL);
	accepted(&v, "no-follow", NULL);
	accepted(&v, "level", NULL);
	assert_true(v.flag);
	assert_false(v.follow);
	assert_int_equal(v.level, 7);
}

static void counts_are_whole_and_in_range(void **state)
{
	struct values v = {0};

	(void)state;
	accepted(&v, "count", "2");
	assert_int_equal(v.count, 2);
	accepted(&v, "count", "0010");
	assert_int_equal(v.count, 10);
	accepted(&v, "any-count", "4294967295");
	assert_int_equal(v.count, 4294967295);
	accepted(&v, "any-count", "0");
	assert_int_equal(v.count, 0);
	REFUSED_ALL("count", "-c ", "not a number from 2 to 10", "", "1", "11", "-2", "+2", " 2",
		    "2 ", "2x", "0x2", "2.0", "2,3", "4294967298", HUGE, HUGE HUGE);
	REFUSED_ALL("any-count", "--any-count ", "not a number from 0 to 4294967295", "",
		    "4294967296", "-1", HUGE, "x");
}

static void durations_have_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {{"10", 10000000000},   {"10s", 10000000000},
		     {"1.5", 1500000000},   {"500ms", 500000000},
		     {"5m", 300000000000},  {"5min", 300000000000},
		     {"2h", 7200000000000}, {".5s", 500000000},
		     {"0.000000001", 1},    {"277777h", 999997200000000000}};
	struct values v = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		accepted(&v, "duration", cases[i].text);
		assert_true(v.ns == cases[i].ns);
	}
	REFUSED_ALL("duration", "-d ", "not a time such as 10s, 5m or 500ms", "", "0", "-1", "+1",
		    " 1", "1 s", "s", "10x", "10us", "1e9", "1e400", "nan", "inf", "0x10", "1.2.3",
		    "0.0000000001", "277778h", HUGE, HUGE "h", "10s,", ".", "1d");
	REFUSED_ALL("interval", "--interval ", "not a time such as 10s, 5m or 500ms", "0.9ms", "");
	accepted(&v, "interval", "1ms");
	assert_true(v.ns == 1000000);
}

static void sizes_have_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {{"1024", 1024},	 {"64K", 65536},	{"64KB", 65536},
		     {"64 KiB", 65536},	 {"1.5M", 1572864},	{"2G", 2147483648},
		     {"1T", 1ull << 40}, {"1P", 1ull << 50},	{"0", 0},
		     {"2048B", 2048},	 {"888P", 888ull << 50}};
	struct values v = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		accepted(&v, "size", cases[i].text);
		assert_true(v.bytes == cases[i].bytes);
	}
	REFUSED_ALL("size", "--size ", "not a size such as 64M or 1.5G", "", "1023", "1", "-1",
		    "-64K", "64k", "64 X", "M", "64MM", "64iB", "64KiBB", "889P", HUGE "0", "nan",
		    "0x400", "1e9");
}

static void texts_and_paths(void **state)
{
	struct values v = {0};

	(void)state;
	accepted(&v, "text", "");
	assert_string_equal(v.text, "");
	accepted(&v, "path", "-");
	assert_string_equal(v.path, "-");
	REFUSED_ALL("path", "-o ", "not the name of a file", "");
	REFUSED_ALL("paths", "--paths ", "not the name of a file", "");
	accepted(&v, "texts", "a:b");
	accepted(&v, "texts", ":");
	accepted(&v, "paths", "c");
	assert_int_equal(v.texts.n, 3);
	assert_string_equal(v.texts.items[0], "a:b");
	assert_string_equal(v.texts.items[2], "c");
	REFUSED_ALL("texts", "--texts ", "say A:B", "", "a", "a;b");
	free(v.texts.items);
}

static void choices_are_whole_words(void **state)
{
	struct values v = {0};

	(void)state;
	accepted(&v, "colour", "blue");
	assert_int_equal(v.choice, 4);
	accepted(&v, "colour", NULL);
	assert_int_equal(v.choice, 2);
	REFUSED_ALL("colour", "--colour=", "not one of red, green, blue", "", "re", "redd", "Red",
		    "red,green", "red ", "1");
	accepted(&v, "colours", "blue");
	assert_int_equal(v.choices, 4);
	accepted(&v, "colours", "green,red");
	assert_int_equal(v.choices, 3);
	REFUSED_ALL("colours", "--colours ", "not some of red,green,blue", "", ",", "red,", ",red",
		    "red,,blue", "red,red", "reds", "red;blue", "red, blue");
}

static void process_ids_add_up(void **state)
{
	struct values v = {0};

	(void)state;
	accepted(&v, "pid", "1,2147483647");
	accepted(&v, "pid", "3");
	assert_int_equal(v.pids.n, 3);
	assert_int_equal(v.pids.items[1], 2147483647);
	assert_int_equal(v.pids.items[2], 3);
	REFUSED_ALL("pid", "-p ", "not a process id, or several with commas between", "", "0", "-1",
		    "1,", ",1", "1,,2", "2147483648", HUGE, "12 34", "self", "1,x");
	REFUSED_ALL("one-pid", "--one-pid ", "not a process id, or several with commas between",
		    "1,2");
	free(v.pids.items);
}

static void long_values_are_cut_off(void **state)
{
	char text[1000];
	struct values v = {0};
	struct error err = {0};

	(void)state;
	memset(text, '9', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(option_set(row_named("count"), text, &v, &err), -1);
	assert_non_null(strstr(err.text, "not a number from 2 to 10"));
}

/* ---- Whole command lines ----------------------------------------------------------------------
 */

struct outcome {
	int status;
	char said[4096]; /* on stdout and stderr */
};

/* The child exits with 0 and says what it was given if the command line is accepted. */
static void parse_in_child(char **argv)
{
	struct values v = {.follow = true};
	int argc = 0;

	while (argv[argc])
		argc++;
	options_parse(&command, argc, argv, &v);
	printf("flag %d, count %u, pids %zu, command", v.flag, v.count, v.pids.n);
	for (char *const *arg = v.argv; arg && *arg; arg++)
		printf(" %s", *arg);
	free(v.pids.items);
	free(v.texts.items);
	exit(0);
}

static struct outcome parsed(const char *line)
{
	struct outcome outcome = {0};
	char copy[256], *rest = copy, *argv[16] = {NULL};
	size_t n = 0, len = 0;
	int ends[2], status;
	ssize_t got;
	pid_t child;

	snprintf(copy, sizeof(copy), "qprof-bpf%s%s", *line ? " " : "", line);
	while (rest)
		argv[n++] = strsep(&rest, " ");
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		parse_in_child(argv);
	}
	close(ends[1]);
	while ((got = read(ends[0], outcome.said + len, sizeof(outcome.said) - 1 - len)) > 0)
		len += (size_t)got;
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	outcome.status = WEXITSTATUS(status);
	return outcome;
}

static void line_is(const char *line, int status, const char *said)
{
	struct outcome outcome = parsed(line);

	if (outcome.status != status || strcmp(outcome.said, said))
		fail_msg("%s: %d: %s", line, outcome.status, outcome.said);
}

static void line_fails(const char *line, const char *why)
{
	struct outcome outcome = parsed(line);

	if (outcome.status != 125 || !strstr(outcome.said, why) ||
	    strncmp(outcome.said, "qprof-bpf test: ", 16))
		fail_msg("%s: %d: %s", line, outcome.status, outcome.said);
}

static void what_follows_a_command_is_its_own(void **state)
{
	(void)state;
	line_is("-f -- true -c 99", 0, "flag 1, count 0, pids 0, command true -c 99");
	line_is("-c 3 true -f -- -p x", 0, "flag 0, count 3, pids 0, command true -f -- -p x");
	line_is("--count=4 -fp1,2 -p 3", 0, "flag 1, count 4, pids 3, command");
	line_is("-c 3 -c 4 -- -f", 0, "flag 0, count 4, pids 0, command -f");
	line_is("--cou 4 x", 0, "flag 0, count 4, pids 0, command x");
	line_is("--colour red", 0, "flag 0, count 0, pids 0, command red");
}

static void a_target_and_a_command_exclude_each_other(void **state)
{
	(void)state;
	line_is("-p 1 -- true", 125, "qprof-bpf test: one of both\n");
	line_is("-p 1 true", 125, "qprof-bpf test: one of both\n");
	line_is("", 125, "qprof-bpf test: say what\n");
	line_is("-f --", 125, "qprof-bpf test: say what\n");
}

static void errors_are_said_in_a_line(void **state)
{
	(void)state;
	line_is("-c " HUGE " true", 125,
		"qprof-bpf test: -c " HUGE ": not a number from 2 to 10\n");
	line_is("--count=-3 true", 125, "qprof-bpf test: -c -3: not a number from 2 to 10\n");
	line_is("-o= -- true", 0, "flag 0, count 0, pids 0, command true");
	line_is("--path= true", 125, "qprof-bpf test: -o '': not the name of a file\n");
}

static void missing_and_unknown(void **state)
{
	(void)state;
	line_fails("-c", "requires an argument");
	line_fails("--count", "requires an argument");
	line_fails("--flag=1 true", "doesn't allow an argument");
	line_fails("--bogus true", "unrecognized option");
	line_fails("-x true", "invalid option");
	line_fails("--co 1 true", "ambiguous");
}

static void those_that_exit(void **state)
{
	(void)state;
	line_is("-V", 0, "qprof-bpf " QPROF_VERSION "\n");
	line_is("--version nonsense --bogus", 0, "qprof-bpf " QPROF_VERSION "\n");
	line_is("-a", 42, "");
	line_is("-f -ac 99 -- x", 42, "");
	assert_int_equal(parsed("-h").status, 0);
	assert_non_null(strstr(parsed("--help").said, "All types:"));
	assert_int_equal(parsed("--usage").status, 0);
}

/* ---- The tables of all commands ---------------------------------------------------------------
 */

static void check_row(const struct command_option *option)
{
	static const size_t sizes[] = {[OPT_FLAG] = sizeof(bool),
				       [OPT_NO_FLAG] = sizeof(bool),
				       [OPT_SET] = sizeof(unsigned int),
				       [OPT_COUNT] = sizeof(unsigned int),
				       [OPT_DURATION] = sizeof(uint64_t),
				       [OPT_SIZE] = sizeof(uint64_t),
				       [OPT_TEXT] = sizeof(char *),
				       [OPT_PATH] = sizeof(char *),
				       [OPT_TEXTS] = sizeof(struct texts),
				       [OPT_PATHS] = sizeof(struct texts),
				       [OPT_CHOICE] = sizeof(unsigned int),
				       [OPT_CHOICES] = sizeof(unsigned int),
				       [OPT_PIDS] = sizeof(struct pids),
				       [OPT_OWN] = 0,
				       [OPT_SEVERAL] = 0};
	const bool has_choices = option->choices || option->choice;

	if (option->type == OPT_HEADING)
		return;
	assert_non_null(option->name);
	assert_true(*option->help != '\0');
	assert_int_equal(option->type >= OPT_COUNT, option->value != NULL);
	assert_true(!option->most || option->least <= option->most);
	assert_int_equal(has_choices, option->type == OPT_CHOICE || option->type == OPT_CHOICES);
	assert_int_equal(option->parse != NULL, option->type == OPT_OWN);
	assert_true(option->type != OPT_OWN || option->wrong);
	assert_int_equal(option->take != NULL, option->type == OPT_SEVERAL);
	assert_int_equal(option->n_values != 0, option->type == OPT_SEVERAL);
	if (sizes[option->type])
		assert_int_equal(option->size, sizes[option->type]);
	if (has_choices)
		assert_non_null(option_choice(option, 0).name);
}

static void check_unique(const struct command *c, size_t i)
{
	const struct command_option *one, *other_one;
	size_t at;

	one = command_option(c, i, &at);
	while (one->name && (other_one = command_option(c, ++i, &at))) {
		assert_true(!one->letter || one->letter != other_one->letter);
		assert_true(!other_one->name || strcmp(one->name, other_one->name));
		assert_true(other_one->letter != 'h');
	}
}

static void tables_of_all_commands_make_sense(void **state)
{
	const struct command *c;
	size_t at, rows_seen = 0;

	(void)state;
	for (size_t n = 0; (c = command_at(n)); n++) {
		assert_non_null(c->what);
		assert_non_null(c->arguments.too_many);
		assert_true(!c->arguments.least || c->arguments.too_few);
		for (size_t i = 0; command_option(c, i, &at); i++, rows_seen++) {
			check_row(command_option(c, i, &at));
			check_unique(c, i);
		}
	}
	assert_true(rows_seen > 50);
	assert_ptr_equal(command_named("report"), &command_report);
	assert_null(command_named("run"));
	assert_null(command_named("audit"));
	assert_null(command_named(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_take_no_value),
		cmocka_unit_test(counts_are_whole_and_in_range),
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(texts_and_paths),
		cmocka_unit_test(choices_are_whole_words),
		cmocka_unit_test(process_ids_add_up),
		cmocka_unit_test(long_values_are_cut_off),
		cmocka_unit_test(what_follows_a_command_is_its_own),
		cmocka_unit_test(a_target_and_a_command_exclude_each_other),
		cmocka_unit_test(errors_are_said_in_a_line),
		cmocka_unit_test(missing_and_unknown),
		cmocka_unit_test(those_that_exit),
		cmocka_unit_test(tables_of_all_commands_make_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
