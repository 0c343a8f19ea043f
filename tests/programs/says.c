/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * says.c - a program that says what it does, as tools do, and marks it, too: says HOW STEPS [wait]
 *
 * gcc -O2 -Wall -Wextra -Werror says.c -o says -pthread
 *
 * With `wait` it prints {"ready": PID} and waits for SIGUSR1. Then, for each step I of STEPS: the
 * text "[ I/ STEPS] layer.I - ", the mark begin("by hand I"), a spike of 4 + I MiB for 2 ms, the
 * mark end("by hand I"), and the text "size = I MB\n". At the end "quant size = 7.50 MB\n". Where
 * the text goes, HOW:
 *
 *   stderr    write(2, ...)
 *   stdout    write(1, ...)
 *   writev    in two pieces
 *   dup       to a descriptor that dup(1) gave
 *   thread    from another thread each time
 *   stdio     printf(), as it buffers
 *   other     to a file that is neither: /dev/null
 *   colour    with escapes before and after
 *   killed    as stderr, and dies by SIGKILL in the last step, before its spike ends
 *   exits     as stderr, and another thread ends the process in the last step (exit_group)
 *   leaves    as stderr, and its last thread ends in the last step (exit of each)
 *   flood     as stderr, but the first text only: STEPS times, as fast as it can, without marks
 *
 * At the end of `stderr`, the last line of stdout is {"wrote":[[BEFORE,AFTER],...]}:
 * CLOCK_MONOTONIC in ns before and after each first text of a step was written.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/sdt.h>
#include <sys/uio.h>

#include "truth.h"

enum { MAX_STEPS = 64 };

static const char *how;
static int fd = 1;
static uint64_t wrote[MAX_STEPS][2];

static void write_all(const char *text)
{
	const size_t len = strlen(text);

	must(write(fd, text, len) == (ssize_t)len);
}

static void *write_in_thread(void *text)
{
	write_all(text);
	return NULL;
}

static void say(char *text)
{
	const size_t len = strlen(text), half = len / 2;
	pthread_t thread;

	if (!strcmp(how, "stdio")) {
		must(fputs(text, stdout) >= 0);
	} else if (!strcmp(how, "writev")) {
		const struct iovec pieces[] = {{text, half}, {text + half, len - half}};

		must(writev(fd, pieces, 2) == (ssize_t)len);
	} else if (!strcmp(how, "thread")) {
		must(!pthread_create(&thread, NULL, write_in_thread, text));
		must(!pthread_join(thread, NULL));
	} else {
		write_all(text);
	}
}

static void *exit_here(void *unused)
{
	(void)unused;
	exit(0);
}

static void end_early(void)
{
	pthread_t thread;

	if (!strcmp(how, "killed"))
		raise(SIGKILL);
	if (!strcmp(how, "leaves"))
		pthread_exit(NULL);
	if (strcmp(how, "exits") != 0)
		return;
	must(!pthread_create(&thread, NULL, exit_here, NULL));
	pthread_join(thread, NULL);
}

static void do_step(unsigned int step, unsigned int steps)
{
	const bool colour = !strcmp(how, "colour");
	const size_t bytes = (4 + step) * MIB;
	char text[128], name[32], *memory;

	snprintf(text, sizeof(text), "%s[%2u/%2u]%s layer.%u - ", colour ? "\x1b[1;32m" : "", step,
		 steps, colour ? "\x1b[0m" : "", step);
	snprintf(name, sizeof(name), "by hand %u", step);
	wrote[step % MAX_STEPS][0] = now_ns();
	say(text);
	wrote[step % MAX_STEPS][1] = now_ns();
	DTRACE_PROBE1(qprof, begin, name);
	memory = map_anonymous(bytes);
	touch(memory, bytes);
	if (step == steps)
		end_early();
	hold_ns(2000000);
	must(!munmap(memory, bytes));
	DTRACE_PROBE1(qprof, end, name);
	snprintf(text, sizeof(text), "size = %u MB\n", step);
	say(text);
}

static void flood(unsigned int steps)
{
	static const char text[] = "[ 1/ 1] flood - \n";

	for (unsigned int step = 0; step < steps; step++)
		must(write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
}

/* Without the recipe's literal. */
static void print_truth(unsigned int steps)
{
	printf("{\"wrote\":[");
	for (unsigned int step = 1; step <= steps && step < MAX_STEPS; step++)
		printf("%s[%" PRIu64 ",%" PRIu64 "]", step > 1 ? "," : "", wrote[step][0],
		       wrote[step][1]);
	printf("]}\n");
}

static void go(int signal_number)
{
	(void)signal_number;
}

static void wait_for_signal(void)
{
	sigset_t set;

	signal(SIGUSR1, go);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("{\"ready\": %d}\n", getpid());
	fflush(stdout);
	sigemptyset(&set);
	sigsuspend(&set);
}

int main(int argc, char **argv)
{
	char end[] = "quant size = 7.50 MB\n";
	unsigned int steps;

	must(argc >= 3);
	how = argv[1];
	steps = (unsigned int)atoi(argv[2]);
	if (argc > 3)
		wait_for_signal();
	if (!strcmp(how, "stderr") || !strcmp(how, "killed") || !strcmp(how, "exits") ||
	    !strcmp(how, "leaves") || !strcmp(how, "flood"))
		fd = 2;
	else if (!strcmp(how, "dup"))
		must((fd = dup(1)) > 2);
	else if (!strcmp(how, "other"))
		must((fd = open("/dev/null", O_WRONLY)) > 2);
	if (!strcmp(how, "flood")) {
		flood(steps);
		return 0;
	}
	for (unsigned int step = 1; step <= steps; step++)
		do_step(step, steps);
	say(end);
	if (!strcmp(how, "stderr"))
		print_truth(steps);
	return 0;
}
