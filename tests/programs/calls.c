/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * calls.c - a program whose functions say what it does, and which marks it, too: calls HOW STEPS
 *
 * gcc -O2 -Wall -Wextra -Werror calls.c -o calls -pthread -ldl
 *
 * For each step I of STEPS it calls quantize_layer("layer.I", I), which marks begin("by hand I"),
 * holds a spike of 4 + I MiB for 2 ms, and marks end("by hand I"); before, it hits the probe
 * tool:layer(I, "layer.I", 2 * I). HOW:
 *
 *   plain      as it is
 *   wait       prints {"ready": PID} and waits for SIGUSR1 before
 *   threads    each step in a thread of its own, all at once
 *   recursion  descend(3) calls descend(2) and so on, within each step
 *   tail       each step by call_last(), which ends with a jump to quantize_layer()
 *   longjmp    each step within leave(), which does not return
 *   unwound    each step in a thread, within leave(), which ends by pthread_exit()
 *   coroutines two stacks take turns within wait_for_turn(), and then all the steps
 *   exit       the last step is within leave(), which exits
 *   many       STEPS calls of count_one(), and nothing else
 *   within     repeat(STEPS) calls itself so often, and then a single step
 *   dlopen     plugin_emit() of plugin.so beside the program, STEPS marks, and then all the steps
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/sdt.h>
#include <ucontext.h>

#include "truth.h"

#ifdef __clang__ /* clones nothing */
#define FUNCTION __attribute__((noinline))
#else
#define FUNCTION __attribute__((noinline, noclone))
#endif

void quantize_layer(const char *name, int step);
void call_last(const char *name, int step);
void descend(unsigned int depth);
void leave(int step);
void wait_for_turn(int who);
void count_one(unsigned long *sum);
void repeat(unsigned long times);

static const char *how;
static int steps;
static jmp_buf back;
static volatile int sink;

FUNCTION void quantize_layer(const char *name, int step)
{
	const size_t bytes = (4 + (size_t)step) * MIB;
	char text[32], *memory;

	snprintf(text, sizeof(text), "by hand %d", step);
	DTRACE_PROBE1(qprof, begin, text);
	memory = map_anonymous(bytes);
	touch(memory, bytes);
	hold_ns(2000000);
	must(!munmap(memory, bytes));
	DTRACE_PROBE1(qprof, end, text);
	sink = name[0];
}

static void do_step(int step)
{
	char name[32];

	snprintf(name, sizeof(name), "layer.%d", step);
	DTRACE_PROBE3(tool, layer, step, name, 2 * step);
	quantize_layer(name, step);
}

FUNCTION void call_last(const char *name, int step)
{
	sink = step;
	quantize_layer(name, step);
}

FUNCTION void descend(unsigned int depth)
{
	hold_ns(200000);
	if (depth > 1)
		descend(depth - 1);
	sink = (int)depth;
}

FUNCTION void leave(int step)
{
	do_step(step);
	if (!strcmp(how, "longjmp"))
		longjmp(back, 1);
	if (!strcmp(how, "unwound"))
		pthread_exit(NULL);
	if (step == steps)
		exit(0);
}

FUNCTION void count_one(unsigned long *sum)
{
	++*sum;
}

FUNCTION void repeat(unsigned long times)
{
	for (unsigned long i = 0; i < times; i++)
		repeat(0);
	sink = (int)times;
}

static void *step_in_thread(void *step)
{
	const int number = (int)(intptr_t)step;

	if (!strcmp(how, "unwound"))
		leave(number);
	else
		do_step(number);
	return NULL;
}

static void in_threads(bool at_once)
{
	pthread_t threads[64];

	must(steps <= 64);
	for (int i = 1; i <= steps; i++) {
		must(!pthread_create(&threads[i - 1], NULL, step_in_thread, (void *)(intptr_t)i));
		if (!at_once)
			must(!pthread_join(threads[i - 1], NULL));
	}
	for (int i = 1; at_once && i <= steps; i++)
		must(!pthread_join(threads[i - 1], NULL));
}

static ucontext_t main_context, contexts[2];

FUNCTION void wait_for_turn(int who)
{
	must(!swapcontext(&contexts[who], &main_context));
	sink = who;
}

FUNCTION static void make_coroutine(int i)
{
	static char stacks[2][65536];

	must(!getcontext(&contexts[i]));
	contexts[i].uc_stack.ss_sp = stacks[i];
	contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
	contexts[i].uc_link = &main_context;
	makecontext(&contexts[i], (void (*)(void))wait_for_turn, 1, i);
}

static void in_coroutines(void)
{
	make_coroutine(0);
	make_coroutine(1);
	for (int turn = 0; turn < 4; turn++)
		must(!swapcontext(&main_context, &contexts[turn % 2]));
}

static void in_library(const char *program)
{
#ifdef WITHOUT_LIBRARIES
	die("a static program has none: %s", program);
#else
	char path[4096];
	const char *slash = strrchr(program, '/');
	void (*emit)(unsigned int), *library;

	snprintf(path, sizeof(path), "%.*s/plugin.so", slash ? (int)(slash - program) : 1,
		 slash ? program : ".");
	library = dlopen(path, RTLD_NOW);
	must(library);
	emit = (void (*)(unsigned int))dlsym(library, "plugin_emit");
	must(emit);
	emit((unsigned int)steps);
#endif
}

FUNCTION static void leave_and_come_back(int step)
{
	if (!setjmp(back))
		leave(step);
}

static void wait_for_signal(void)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	printf("{\"ready\": %d}\n", getpid());
	must(!fflush(stdout));
	must(!sigwait(&set, &signal));
}

static void one_by_one(void)
{
	for (int i = 1; i <= steps; i++) {
		char name[32];

		snprintf(name, sizeof(name), "layer.%d", i);
		if (!strcmp(how, "tail"))
			call_last(name, i);
		else if (!strcmp(how, "longjmp"))
			leave_and_come_back(i);
		else if (!strcmp(how, "exit"))
			leave(i);
		else
			do_step(i);
		if (!strcmp(how, "recursion"))
			descend(3);
	}
}

int main(int argc, char **argv)
{
	unsigned long sum = 0;

	must(argc == 3);
	how = argv[1];
	steps = (int)number(argv[2]);
	if (!strcmp(how, "wait"))
		wait_for_signal();
	if (!strcmp(how, "many")) {
		for (int i = 0; i < steps; i++)
			count_one(&sum);
		printf("{\"case\": \"calls\", \"sum\": %lu}\n", sum);
		return 0;
	}
	if (!strcmp(how, "within")) {
		repeat((unsigned long)steps);
		steps = 1;
	}
	if (!strcmp(how, "coroutines"))
		in_coroutines();
	if (!strcmp(how, "dlopen"))
		in_library(argv[0]);
	if (!strcmp(how, "threads") || !strcmp(how, "unwound"))
		in_threads(!strcmp(how, "threads"));
	else
		one_by_one();
	printf("{\"case\": \"calls\", \"steps\": %d}\n", steps);
	return 0;
}
