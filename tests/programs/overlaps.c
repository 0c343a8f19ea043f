/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * overlaps.c - marks of two processes overlap on one CPU: overlaps ROUNDS
 *
 * The name of each mark of the parent, "Slow N", lies on a page that is not there; it gets there
 * (userfaultfd) when the child has hit its mark "Quick N". So one mark lasts from before the
 * other's begin until after its end.
 *
 * Prints {"slow": PID, "quick": PID}, or {"cannot": REASON} where userfaultfd is refused.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "truth.h"

static struct shared {
	unsigned int begun, answered; /* rounds */
} * shared;

static unsigned int rounds;
static char *names; /* a page each */
static int faults;

static void mark(const char *name)
{
	DTRACE_PROBE1(qprof, mark, name);
}

/* Both are of one CPU: the other is let run meanwhile. */
static void wait_until(const unsigned int *at, unsigned int round)
{
	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) < round)
		sched_yield();
}

static void answer(void)
{
	for (unsigned int i = 1; i <= rounds; i++) {
		char name[32];

		wait_until(&shared->begun, i);
		snprintf(name, sizeof(name), "Quick %u", i);
		mark(name);
		__atomic_store_n(&shared->answered, i, __ATOMIC_RELEASE);
	}
}

static void *serve(void *arg)
{
	char *page = map_anonymous(TRUTH_PAGE);

	(void)arg;
	for (unsigned int i = 1; i <= rounds; i++) {
		struct uffd_msg message;
		struct uffdio_copy copy = {.src = (uintptr_t)page, .len = TRUTH_PAGE};

		must(read(faults, &message, sizeof(message)) == sizeof(message));
		must(message.event == UFFD_EVENT_PAGEFAULT);
		__atomic_store_n(&shared->begun, i, __ATOMIC_RELEASE);
		wait_until(&shared->answered, i);
		snprintf(page, TRUTH_PAGE, "Slow %u", i);
		copy.dst = message.arg.pagefault.address & ~(TRUTH_PAGE - 1);
		must(!ioctl(faults, UFFDIO_COPY, &copy));
	}
	return NULL;
}

/* Returns false if this program may not serve faults of the kernel. */
static bool begin_serving(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register missing = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults < 0)
		return false;
	names = map_anonymous(rounds * TRUTH_PAGE);
	missing.range.start = (uintptr_t)names;
	missing.range.len = rounds * TRUTH_PAGE;
	must(!ioctl(faults, UFFDIO_API, &api) && !ioctl(faults, UFFDIO_REGISTER, &missing));
	return true;
}

static void stay_on_one_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	must(!sched_setaffinity(0, sizeof(cpus), &cpus));
}

int main(int argc, char **argv)
{
	pthread_t server;
	pid_t child;
	int status;

	rounds = argc == 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
	must(rounds > 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	must(shared != MAP_FAILED);
	stay_on_one_cpu();
	child = fork();
	must(child >= 0);
	if (!child) {
		answer();
		_exit(0);
	}
	if (!begin_serving()) {
		printf("{\"cannot\": \"userfaultfd: %s\"}\n", strerror(errno));
		return kill(child, SIGKILL);
	}
	must(!pthread_create(&server, NULL, serve, NULL));
	for (unsigned int i = 0; i < rounds; i++)
		mark(names + i * TRUTH_PAGE);
	must(!pthread_join(server, NULL));
	must(waitpid(child, &status, 0) == child && !status);
	printf("{\"slow\": %d, \"quick\": %d}\n", (int)getpid(), (int)child);
	return 0;
}
