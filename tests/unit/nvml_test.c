/* SPDX-License-Identifier: GPL-2.0-only */
/* What NVML says, by a library that says what a file says; and the child that asks it. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/gpu_helper.h"
#include "kernel/nvml.h"

enum { LONG_MS = 60000 };

static const char two_gpus[] =
	"gpu 25757220864 1048576000 471859200 3b GPU-8932f937-d72c-4106-c12f-20bd9faed9f6 NVIDIA "
	"GeForce RTX 4090\n"
	"gpu 85899345920 4096 0 af GPU-0fb1a4ae-aaaa-bbbb-cccc-0123456789ab NVIDIA H100 80GB HBM3\n"
	"use 0 4242 524288000\n"
	"use 0 77 1048576\n"
	"draw 0 77 2097152\n"
	"use 1 4242 18446744073709551615\n";

static char state_path[64];

static void say(const char *text)
{
	FILE *file = fopen(state_path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(state_path, sizeof(state_path), "/tmp/nvml_test.%d", getpid());
	setenv("QPROF_STANDIN_NVML", state_path, 1);
	return 0;
}

static int teardown(void **state)
{
	char looks[80];

	(void)state;
	snprintf(looks, sizeof(looks), "%s.looks", state_path);
	unlink(looks);
	unlink(state_path);
	return 0;
}

static void test_two_gpus(void **state)
{
	char why[GPU_WHY_MAX] = "";
	struct gpu_look look = {.n_devices = 0};
	struct nvml *n;

	(void)state;
	say(two_gpus);
	n = nvml_open(why);
	assert_string_equal(why, "");
	assert_non_null(n);
	nvml_look(n, &look);
	assert_int_equal(look.n_devices, 2);
	assert_string_equal(look.devices[0].name, "NVIDIA GeForce RTX 4090");
	assert_string_equal(look.devices[0].uuid, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
	assert_string_equal(look.devices[0].pci, "0000:3b:00.0");
	assert_int_equal(look.devices[0].total, 25757220864);
	assert_true(look.devices[0].knows_used);
	/* What the driver keeps for itself is not in it. */
	assert_int_equal(look.devices[0].used, 1048576000);
	assert_int_equal(look.devices[1].index, 1);
	assert_int_equal(look.devices[1].used, 4096);
	/* A process that computes and draws counts once; one that is not told of, not at all. */
	assert_int_equal(look.n_uses, 2);
	assert_int_equal(look.uses[0].pid, 4242);
	assert_int_equal(look.uses[0].bytes, 524288000);
	assert_int_equal(look.uses[1].pid, 77);
	assert_int_equal(look.uses[1].bytes, 2097152);
	assert_false(look.uses_were_cut);
	free(n);
}

static void test_more_processes_than_there_is_room_for(void **state)
{
	char why[GPU_WHY_MAX] = "", *text = malloc(1 << 16);
	struct gpu_look look = {.n_devices = 0};
	struct nvml *n;
	int len = sprintf(text, "gpu 100 50 0 1 GPU-1 A\n");

	(void)state;
	for (int i = 0; i <= GPU_MAX_USES; i++)
		len += sprintf(text + len, "use 0 %d 1\n", i + 1);
	say(text);
	free(text);
	n = nvml_open(why);
	assert_non_null(n);
	nvml_look(n, &look);
	assert_true(look.uses_were_cut);
	assert_int_equal(look.devices[0].used, 50);
	free(n);
}

static void test_no_driver(void **state)
{
	char why[GPU_WHY_MAX] = "";

	(void)state;
	say("fail 9\n");
	assert_null(nvml_open(why));
	assert_string_equal(why, "libnvidia-ml.so.1 says: Driver Not Loaded");
}

/* Drivers before 450 tell processes in another form, and nothing of what they reserve. Run anew:
 * a library is found once. */
static void test_old_driver(void **state)
{
	char command[600], self[256] = "", line[128] = "";
	FILE *run;

	(void)state;
	say(two_gpus);
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(command, sizeof(command), "LD_LIBRARY_PATH=%s '%s' old", STANDIN_OLD, self);
	run = popen(command, "r");
	assert_non_null(run);
	assert_non_null(fgets(line, sizeof(line), run));
	assert_int_equal(pclose(run), 0);
	assert_string_equal(line, "2 1520435200 2 4242 524288000 1048576\n");
}

static int tell_of_old(void)
{
	char why[GPU_WHY_MAX] = "";
	static struct gpu_look look;
	struct nvml *n = nvml_open(why);

	if (!n)
		return 1;
	nvml_look(n, &look);
	printf("%u %llu %u %u %llu %llu\n", look.n_devices,
	       (unsigned long long)look.devices[0].used, look.n_uses, look.uses[0].pid,
	       (unsigned long long)look.uses[0].bytes, (unsigned long long)look.uses[1].bytes);
	free(n);
	return 0;
}

/* ---- The child --------------------------------------------------------------------------------
 */

static const struct gpu_question nobody;

static void test_helper_answers(void **state)
{
	static struct gpu_look look;
	struct gpu_helper h;
	uint64_t asked_ns = 0;

	(void)state;
	say(two_gpus);
	assert_int_equal(gpu_helper_begin(&h), 0);
	assert_int_equal(gpu_helper_take(&h, &look, &asked_ns, 1), 0);
	assert_true(gpu_helper_ask(&h, &nobody, 5));
	/* A burst of questions is one more look, as of the last. */
	assert_true(gpu_helper_ask(&h, &nobody, 6));
	assert_true(gpu_helper_ask(&h, &nobody, 7));
	assert_true(gpu_helper_wait(&h, LONG_MS));
	assert_int_equal(gpu_helper_take(&h, &look, &asked_ns, 8), 1);
	assert_int_equal(asked_ns, 5);
	assert_int_equal(look.n_devices, 2);
	assert_true(look.devices[1].is_visible && !look.devices[1].has_number);
	assert_true(look.time_ns > 0);
	assert_true(gpu_helper_wait(&h, LONG_MS));
	assert_int_equal(gpu_helper_take(&h, &look, &asked_ns, 9), 1);
	assert_int_equal(asked_ns, 8);
	assert_false(h.asked);
	gpu_helper_end(&h);
	gpu_helper_end(&h);
}

/* As the environment says that the process was executed with: here another one of ours. */
static void test_helper_knows_what_is_visible(void **state)
{
	struct gpu_question question = {.leader = 0};
	static struct gpu_look look;
	struct gpu_helper h;
	uint64_t asked_ns = 0;
	char ready = 0;
	int ends[2];
	pid_t child;

	(void)state;
	say(two_gpus);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		/* No further exec, within which a process has no environment. */
		execle("/bin/sh", "sh", "-c", "echo; kill -STOP $$", NULL,
		       (char *[]){"CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID", NULL});
		_exit(1);
	}
	assert_int_equal(read(ends[0], &ready, 1), 1);
	question.leader = (uint32_t)child;
	assert_int_equal(gpu_helper_begin(&h), 0);
	assert_true(gpu_helper_ask(&h, &question, 5));
	assert_true(gpu_helper_wait(&h, LONG_MS));
	assert_int_equal(gpu_helper_take(&h, &look, &asked_ns, 8), 1);
	gpu_helper_end(&h);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	assert_false(look.devices[0].is_visible);
	assert_true(look.devices[1].is_visible && look.devices[1].has_number);
	assert_int_equal(look.devices[1].number, 0);
}

static void test_helper_of_a_driver_that_hangs(void **state)
{
	static struct gpu_look look;
	struct gpu_helper h;
	uint64_t asked_ns = 0;

	(void)state;
	say("hang\n");
	assert_int_equal(gpu_helper_begin(&h), 0);
	assert_true(gpu_helper_ask(&h, &nobody, 1));
	assert_true(gpu_helper_ask(&h, &nobody, 2));
	assert_int_equal(gpu_helper_take(&h, &look, &asked_ns, 3), 0);
	assert_false(gpu_helper_ask(&h, &nobody, 1 + GPU_HELPER_PATIENCE_MS * 1000000ull));
	gpu_helper_end(&h);
}

static void test_helper_that_is_gone(void **state)
{
	static struct gpu_look look;
	struct gpu_helper h;
	uint64_t asked_ns = 0;

	(void)state;
	say(two_gpus);
	assert_int_equal(gpu_helper_begin(&h), 0);
	kill(h.aside.child, SIGKILL);
	assert_true(gpu_helper_wait(&h, LONG_MS));
	assert_int_equal(gpu_helper_take(&h, &look, &asked_ns, 1), -1);
	assert_false(gpu_helper_ask(&h, &nobody, 2));
	gpu_helper_end(&h);
}

static void test_one_look(void **state)
{
	static struct gpu_look look;

	(void)state;
	say(two_gpus);
	assert_true(gpu_look_once(&look, LONG_MS));
	assert_int_equal(look.n_devices, 2);
	say("hang\n");
	assert_false(gpu_look_once(&look, 50));
}

static void test_names_of_libraries(void **state)
{
	(void)state;
	assert_true(gpu_is_library("/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
	assert_true(gpu_is_library("/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14"));
	assert_true(gpu_is_library("/opt/rocm/lib/libhsa-runtime64.so.1.14.60200"));
	assert_false(gpu_is_library("/usr/lib/libcudart.so.12"));
	assert_false(gpu_is_library("/usr/lib/libcuda.so_old"));
	assert_false(gpu_is_library("/home/libcuda.so.1/program"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_gpus),
		cmocka_unit_test(test_more_processes_than_there_is_room_for),
		cmocka_unit_test(test_no_driver),
		cmocka_unit_test(test_old_driver),
		cmocka_unit_test(test_helper_answers),
		cmocka_unit_test(test_helper_knows_what_is_visible),
		cmocka_unit_test(test_helper_of_a_driver_that_hangs),
		cmocka_unit_test(test_helper_that_is_gone),
		cmocka_unit_test(test_one_look),
		cmocka_unit_test(test_names_of_libraries),
	};

	if (argc > 1 && !strcmp(argv[1], "old"))
		return tell_of_old();
	return cmocka_run_group_tests(tests, setup, teardown);
}
