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
 */
#include <pthread.h>
#include <signal.h>
#include <sys/sdt.h>
#include <sys/uio.h>

#include "truth.h"

static const char *how;
static int fd = 1;

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

static void do_step(unsigned int step, unsigned int steps)
{
	const bool colour = !strcmp(how, "colour");
	const size_t bytes = (4 + step) * MIB;
	char text[128], name[32], *memory;

	snprintf(text, sizeof(text), "%s[%2u/%2u]%s layer.%u - ", colour ? "\x1b[1;32m" : "", step,
		 steps, colour ? "\x1b[0m" : "", step);
	snprintf(name, sizeof(name), "by hand %u", step);
	say(text);
	DTRACE_PROBE1(qprof, begin, name);
	memory = map_anonymous(bytes);
	touch(memory, bytes);
	if (!strcmp(how, "killed") && step == steps)
		raise(SIGKILL);
	hold_ns(2000000);
	must(!munmap(memory, bytes));
	DTRACE_PROBE1(qprof, end, name);
	snprintf(text, sizeof(text), "size = %u MB\n", step);
	say(text);
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
	if (!strcmp(how, "stderr") || !strcmp(how, "killed"))
		fd = 2;
	else if (!strcmp(how, "dup"))
		must((fd = dup(1)) > 2);
	else if (!strcmp(how, "other"))
		must((fd = open("/dev/null", O_WRONLY)) > 2);
	for (unsigned int step = 1; step <= steps; step++)
		do_step(step, steps);
	say(end);
	return 0;
}
