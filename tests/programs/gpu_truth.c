/* SPDX-License-Identifier: GPL-2.0-only */
#include "gpu_truth.h"

#include <pthread.h>
#include <signal.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

enum {
	PROCESSES = 3,
	THREADS = 8,
	MAX_ROWS = 64,
	MAX_LIVE = 256, /* of a thread */
};

struct amount {
	uint64_t held, peak, step;
};

struct process {
	pid_t pid;
	struct amount all, pinned, device[GPU_DEVICES];
};

struct row {
	char step[32];
	uint64_t gpu, peak, pinned;
};

/* What all processes know. */
static struct shared {
	pthread_mutex_t lock;
	struct amount all, pinned, device[GPU_DEVICES];
	struct process process[PROCESSES];
	struct row rows[MAX_ROWS];
	unsigned int n_rows, refused, operations;
	unsigned int done; /* processes that have made all their calls */
	bool may_end;
} * shared;

static const struct gpu_library *library;
static struct process *self;
static bool locks = true;
static unsigned int share_of_thread;

/* ---- The ledger ---- */

static void add(struct amount *amount, int64_t bytes)
{
	const uint64_t held = __atomic_add_fetch(&amount->held, (uint64_t)bytes, __ATOMIC_RELAXED);

	if (bytes <= 0 || !locks)
		return;
	if (held > amount->peak)
		amount->peak = held;
	if (held > amount->step)
		amount->step = held;
}

void gpu_count(bool pinned, unsigned int device, int64_t bytes)
{
	add(pinned ? &shared->pinned : &shared->all, bytes);
	add(pinned ? &self->pinned : &self->all, bytes);
	if (pinned)
		return;
	add(&shared->device[device], bytes);
	add(&self->device[device], bytes);
}

void gpu_count_refused(void)
{
	__atomic_add_fetch(&shared->refused, 1, __ATOMIC_RELAXED);
}

/* All that a process held is free. */
static void count_gone(struct process *process)
{
	add(&shared->all, -(int64_t)process->all.held);
	add(&shared->pinned, -(int64_t)process->pinned.held);
	for (unsigned int i = 0; i < GPU_DEVICES; i++)
		add(&shared->device[i], -(int64_t)process->device[i].held);
}

static void take_lock(void)
{
	if (locks)
		must(!pthread_mutex_lock(&shared->lock));
}

static void give_lock(void)
{
	if (locks)
		must(!pthread_mutex_unlock(&shared->lock));
}

/* With the lock. */
void gpu_mark(const char *name)
{
	struct row *row = &shared->rows[shared->n_rows++];

	must(shared->n_rows < MAX_ROWS);
	snprintf(row->step, sizeof(row->step), "%s", name);
	row->gpu = shared->all.held;
	row->peak = shared->all.step;
	row->pinned = shared->pinned.held;
	shared->all.step = shared->all.held;
	DTRACE_PROBE1(qprof, mark, row->step);
}

void gpu_count_and_mark(const char *name, bool pinned, int64_t bytes)
{
	gpu_count(pinned, 0, bytes);
	gpu_mark(name);
}

/* ---- Operations ---- */

uint32_t gpu_draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

uint64_t gpu_draw_bytes(uint64_t *state)
{
	return 1 + gpu_draw(state) % GPU_MAX_BYTES;
}

static void allocate(struct gpu_live *live, unsigned int device, uint64_t *state)
{
	live->bytes = gpu_draw_bytes(state);
	library->allocate(live, device, state);
	gpu_count(live->pinned, device, (int64_t)live->bytes);
}

static void release(struct gpu_live *live, unsigned int device)
{
	library->release(live);
	gpu_count(live->pinned, device, -(int64_t)live->bytes);
}

static void spike(unsigned int device, uint64_t *state)
{
	struct gpu_live live = {.bytes = 3 * (uint64_t)GPU_MAX_BYTES + gpu_draw_bytes(state)};

	library->spike(&live, device);
	gpu_count(false, device, (int64_t)live.bytes);
	hold_ns(200000);
	release(&live, device);
}

static void operate(struct gpu_live **live, size_t *n, unsigned int device, uint64_t *state)
{
	const unsigned int what = gpu_draw(state) % 1000;

	if (what == 0) {
		spike(device, state);
	} else if (what < 10) {
		library->other(device, state);
	} else if (what < 30) {
		library->fail(state);
	} else if (*n && (*n == MAX_LIVE || what & 1)) {
		const size_t at = gpu_draw(state) % *n;

		release(live[at], device);
		free(live[at]);
		live[at] = live[--*n];
	} else {
		live[*n] = calloc(1, sizeof(**live));
		must(live[*n]);
		allocate(live[(*n)++], device, state);
	}
}

static void *operate_all(void *arg)
{
	const unsigned int number = (unsigned int)(uintptr_t)arg, device = number % GPU_DEVICES;
	struct gpu_live **live = calloc(MAX_LIVE, sizeof(*live));
	uint64_t state = number + 1;
	size_t n = 0;

	must(live);
	library->use(device);
	for (unsigned int i = 0; i < share_of_thread; i++) {
		char name[32];

		take_lock();
		operate(live, &n, device, &state);
		if (locks && !number && i % (share_of_thread / 8 + 1) == 0) {
			snprintf(name, sizeof(name), "Step %u", i);
			gpu_mark(name);
		}
		give_lock();
	}
	return NULL;
}

static void run_threads(unsigned int process)
{
	pthread_t threads[THREADS];

	self = &shared->process[process];
	self->pid = getpid();
	library->begin();
	for (uintptr_t i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, operate_all,
				     (void *)(process * THREADS + i)));
	for (unsigned int i = 0; i < THREADS; i++)
		must(!pthread_join(threads[i], NULL));
	__atomic_add_fetch(&shared->done, 1, __ATOMIC_RELEASE);
}

static void share(void)
{
	pthread_mutexattr_t attributes;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	must(shared != MAP_FAILED);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	must(!pthread_mutex_init(&shared->lock, &attributes));
}

static void print(const char *name)
{
	printf("{\"case\": \"%s\", \"rows\": [", name);
	for (unsigned int i = 0; i < shared->n_rows; i++)
		printf("%s{\"step\": \"%s\", \"gpu\": %" PRIu64 ", \"peak\": %" PRIu64
		       ", \"pinned\": %" PRIu64 "}",
		       i ? ", " : "", shared->rows[i].step, shared->rows[i].gpu,
		       shared->rows[i].peak, shared->rows[i].pinned);
	printf("], \"peak\": %" PRIu64 ", \"pinned_peak\": %" PRIu64 ", \"refused\": %u",
	       shared->all.peak, shared->pinned.peak, shared->refused);
	printf(", \"devices\": [%" PRIu64 ", %" PRIu64 "], \"processes\": [",
	       shared->device[0].peak, shared->device[1].peak);
	for (unsigned int i = 0; i < PROCESSES && shared->process[i].pid; i++)
		printf("%s{\"pid\": %d, \"peak\": %" PRIu64 ", \"held\": %" PRIu64
		       ", \"pinned\": %" PRIu64 "}",
		       i ? ", " : "", shared->process[i].pid, shared->process[i].all.peak,
		       shared->process[i].all.held, shared->process[i].pinned.held);
	printf("]}\n");
}

static void run_random(unsigned int operations)
{
	pid_t ends, dies;
	int status;

	share_of_thread = operations / (PROCESSES * THREADS);
	ends = fork();
	if (!ends) {
		run_threads(1);
		while (!__atomic_load_n(&shared->may_end, __ATOMIC_ACQUIRE))
			pause_ns(1000000);
		_exit(0);
	}
	dies = fork();
	if (!dies) {
		run_threads(2);
		while (true)
			pause();
	}
	must(ends > 0 && dies > 0);
	run_threads(0);
	/* When a process ends, nobody may make calls: the ledger learns of its end later. */
	while (__atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) < PROCESSES)
		pause_ns(1000000);
	gpu_mark("All Done");
	__atomic_store_n(&shared->may_end, true, __ATOMIC_RELEASE);
	must(waitpid(ends, &status, 0) == ends && !status);
	count_gone(&shared->process[1]);
	gpu_mark("One Ended");
	must(!kill(dies, SIGKILL) && waitpid(dies, &status, 0) == dies && WIFSIGNALED(status));
	count_gone(&shared->process[2]);
	gpu_mark("One Killed");
}

static void run_steps(void)
{
	self = &shared->process[0];
	self->pid = getpid();
	library->begin();
	library->use(0);
	library->steps();
}

/* ---- Refused ---- */

static void hold(unsigned int device)
{
	struct gpu_live live = {.bytes = GPU_MAX_BYTES};

	library->use(device);
	library->spike(&live, device);
	gpu_count(false, device, (int64_t)live.bytes);
}

static void run_refused(const char *how)
{
	self = &shared->process[0];
	self->pid = getpid();
	library->begin();
	hold(1);
	gpu_mark("Load");
	library->refuse();
	if (!strcmp(how, "given"))
		hold(1);
	else if (!strcmp(how, "elsewhere"))
		hold(0);
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "segv"))
		*(volatile char *)NULL = 0;
	else
		_exit(strcmp(how, "well") ? 3 : 0);
	_exit(3);
}

int gpu_main(int argc, char **argv, const struct gpu_library *with)
{
	const char *name = argc > 1 ? argv[1] : "";

	library = with;
	share();
	if (!strcmp(name, "steps") && argc == 2) {
		run_steps();
	} else if (argc == 3 && !strcmp(name, "refused")) {
		run_refused(argv[2]);
	} else if (argc == 3 && (!strcmp(name, "random") || !strcmp(name, "free"))) {
		locks = !strcmp(name, "random");
		run_random((unsigned int)strtoul(argv[2], NULL, 10));
	} else {
		die("random N | free N | steps | refused HOW");
	}
	print(name);
	return 0;
}
