/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * idle.c - a target to attach to, which does what it is told to: idle [ACTION...]
 *
 * gcc -O2 -Wall -Wextra -Werror idle.c -o idle -pthread -ldl                  (systemtap-sdt-dev)
 *
 * Prints {"ready": PID} and waits. Each SIGUSR1 makes it do its next action and print
 * {"done": ACTION, "rss_bytes": N}; after the last one it exits with 0, without any it waits on.
 * Actions:
 *   mark:NAME           emits a checkpoint
 *   touch:MIB           memory that stays
 *   spike:MIB:US        memory that is held so long and given back; adds "peak_bytes" to the line
 *   child:MIB           a child touches that much, emits "in child" and goes; adds "tree_bytes",
 *                       what it and its parent had then
 *   huge:PAGES          maps and touches so many huge pages; adds "hugetlb_bytes" to the line
 *   read:FILE           reads it all through read(2); adds "read" to the line
 *   dlopen:LIBRARY      opens plugin.so and has it emit one mark
 *   exec:PROGRAM        becomes that program, its arguments the actions that are left
 *   leader              the first thread goes, another carries on
 *   exit:STATUS         goes at once
 *   abort               likewise, by SIGABRT
 *   loop                emits "loop" and touches a MiB over and over; SIGUSR1 makes it print
 *                       {"loops": N}, SIGTERM print it and exit with 0
 *   execloop            emits "exec" and execs itself over and over, until it is killed
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

static char **actions; /* those to come, NULL at the end */
static sigset_t go;

static __attribute__((noinline)) void mark(const char *name)
{
	DTRACE_PROBE1(qprof, mark, name);
}

/* What every line ends with. The line goes out whole. */
static void say_done(const char *action, const char *key, uint64_t value)
{
	uint64_t rss = rss_bytes(0);

	printf("{\"done\": \"%s\", \"rss_bytes\": %" PRIu64, action, rss);
	if (key)
		printf(", \"%s\": %" PRIu64, key, value);
	puts("}");
	fflush(stdout);
}

static void touch_spike(const char *action, const char *arguments)
{
	char *colon, *p;
	size_t size = strtoull(arguments, &colon, 10) * MIB;
	uint64_t before;

	must(*colon == ':');
	rss_bytes(0);
	before = rss_bytes(0);
	p = map_anonymous(size);
	touch(p, size);
	hold_ns(number(colon + 1) * 1000);
	munmap(p, size);
	say_done(action, "peak_bytes", before + size);
}

static void touch_huge(const char *action, size_t pages)
{
	const size_t size = pages * huge_page_bytes();

	touch(map_or_die(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
			 -1),
	      size);
	say_done(action, "hugetlb_bytes", hugetlb_bytes());
}

/* What it and its parent have then is what the child says through a pipe, when it has all. */
static void run_child(const char *action, size_t size)
{
	uint64_t both;
	int ends[2];
	pid_t pid;

	must(!pipe(ends));
	bring_files_in();
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		touch(map_anonymous(size), size);
		bring_files_in();
		rss_bytes(0);
		both = rss_bytes(0) + rss_bytes(getppid());
		must(write(ends[1], &both, sizeof(both)) == sizeof(both));
		mark("in child");
		_exit(0);
	}
	must(read(ends[0], &both, sizeof(both)) == sizeof(both));
	close(ends[0]);
	close(ends[1]);
	must(waitpid(pid, NULL, 0) == pid);
	say_done(action, "tree_bytes", both);
}

static uint64_t read_file(const char *path)
{
	static char block[64 * KIB];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t all = 0;
	ssize_t n;

	must(fd >= 0);
	while ((n = read(fd, block, sizeof(block))) > 0)
		all += (uint64_t)n;
	must(!n);
	close(fd);
	return all;
}

static void open_plugin(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*emit)(unsigned int count);

	if (!library)
		die("%s", dlerror());
	*(void **)&emit = dlsym(library, "plugin_emit");
	must(emit);
	emit(1);
}

static void become(const char *program)
{
	*--actions = (char *)program;
	execv(program, actions);
	die("exec %s", program);
}

static volatile sig_atomic_t asked, told_to_stop;

static void on_ask(int number_of_signal)
{
	if (number_of_signal == SIGTERM)
		told_to_stop = 1;
	else
		asked = 1;
}

static void say_loops(uint64_t loops)
{
	printf("{\"loops\": %" PRIu64 "}\n", loops);
	fflush(stdout);
}

static void loop(void)
{
	struct sigaction action = {.sa_handler = on_ask};
	uint64_t loops = 0;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	pthread_sigmask(SIG_UNBLOCK, &go, NULL);
	say_done("loop", NULL, 0);
	while (!told_to_stop) {
		char *p = map_anonymous(MIB);

		touch(p, MIB);
		mark("loop");
		munmap(p, MIB);
		loops++;
		if (asked) {
			asked = 0;
			say_loops(loops);
		}
	}
	say_loops(loops);
	exit(0);
}

static void exec_loop(void)
{
	static char *again[] = {"idle", "execloop", NULL};

	mark("exec");
	execv("/proc/self/exe", again);
	die("exec");
}

static pthread_t first_thread;
static void *carry_on(void *unused);

static void leave_to_another(void)
{
	pthread_t thread;

	first_thread = pthread_self();
	must(!pthread_create(&thread, NULL, carry_on, NULL));
	pthread_exit(NULL);
}

/* The rest of text behind prefix, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(text, prefix, length) ? NULL : text + length;
}

static void act(const char *action)
{
	const char *rest;

	if ((rest = behind(action, "spike:"))) {
		touch_spike(action, rest);
		return;
	}
	if ((rest = behind(action, "read:"))) {
		say_done(action, "read", read_file(rest));
		return;
	}
	if ((rest = behind(action, "huge:"))) {
		touch_huge(action, number(rest));
		return;
	}
	if ((rest = behind(action, "child:"))) {
		run_child(action, number(rest) * MIB);
		return;
	}
	if ((rest = behind(action, "mark:")))
		mark(rest);
	else if ((rest = behind(action, "touch:")))
		touch(map_anonymous(number(rest) * MIB), number(rest) * MIB);
	else if ((rest = behind(action, "dlopen:")))
		open_plugin(rest);
	else if ((rest = behind(action, "exec:")))
		become(rest);
	else if ((rest = behind(action, "exit:")))
		_exit((int)number(rest));
	else if (!strcmp(action, "abort"))
		abort();
	else if (!strcmp(action, "loop"))
		loop();
	else if (!strcmp(action, "leader"))
		leave_to_another(); /* who says that it is done */
	else
		die("no action '%s'", action);
	say_done(action, NULL, 0);
}

static void serve(void)
{
	bool endless = !*actions;
	int caught;

	while (endless || *actions) {
		must(!sigwait(&go, &caught));
		if (*actions)
			act(*actions++);
	}
}

static void *carry_on(void *unused)
{
	(void)unused;
	pthread_join(first_thread, NULL);
	say_done("leader", NULL, 0);
	serve();
	exit(0);
}

int main(int argc, char **argv)
{
	(void)argc;
	actions = argv + 1;
	if (*actions && !strcmp(*actions, "execloop"))
		exec_loop();
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &go, NULL);
	bring_files_in();
	printf("{\"ready\": %d}\n", (int)getpid());
	fflush(stdout);
	serve();
	return 0;
}
