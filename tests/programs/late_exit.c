/* SPDX-License-Identifier: GPL-2.0-only */
/* For LD_PRELOAD: a child that nobody needs any more lives on for 20 ms, as one does that waits for
 * a CPU. Only its own end ends it: it is not killed. */
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int kill(pid_t pid, int sig)
{
	return sig == SIGKILL ? 0 : (int)syscall(SYS_kill, pid, sig);
}

void _exit(int status)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	nanosleep(&pause, NULL);
	for (;;)
		syscall(SYS_exit_group, status);
}
