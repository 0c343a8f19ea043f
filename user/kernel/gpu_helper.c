/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/gpu_helper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/amdgpu.h"
#include "kernel/gpu_visible.h"
#include "kernel/nvml.h"

enum { ENVIRONMENT_MAX = 1 << 20 };

/* ---- The child --------------------------------------------------------------------------------
 */

/* The environment of the process when it was executed; NULL if it is gone, or out of memory. */
static char *read_environment(uint32_t pid, size_t *size)
{
	char path[64], *text = malloc(ENVIRONMENT_MAX);
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	file = text ? fopen(path, "re") : NULL;
	if (!file) {
		free(text);
		return NULL;
	}
	*size = fread(text, 1, ENVIRONMENT_MAX, file);
	fclose(file);
	if (!*size) {
		free(text);
		return NULL;
	}
	return text;
}

/* It is read once: the process may be gone by the next look. */
static void mark_visible(struct gpu_look *look, uint32_t leader)
{
	static struct gpu_environment env;
	static char *text;
	size_t size;

	if (!text && leader) {
		text = read_environment(leader, &size);
		if (text)
			env = gpu_environment_of(text, size);
	}
	gpus_mark_visible(look->devices, look->n_devices, &env);
	for (uint32_t i = 0; !text && i < look->n_devices; i++)
		look->devices[i].has_number = false;
}

static void answer(void *context, int fd)
{
	static const struct amdgpu_roots roots = {.sys = "/sys", .proc = "/proc"};
	static struct gpu_look look;
	char why[GPU_WHY_MAX] = "";
	struct gpu_question question;
	struct nvml *nvml;

	(void)context;
	aside_open_standard();
	nvml = nvml_open(why);
	while (recv(fd, &question, sizeof(question), 0) == sizeof(question)) {
		memset(&look, 0, sizeof(look));
		memcpy(look.nvidia_why, why, sizeof(why));
		if (nvml)
			nvml_look(nvml, &look);
		amdgpu_look(&roots, question.pids, question.n_pids, &look, look.amd_why);
		mark_visible(&look, question.leader);
		look.time_ns = clock_ns(CLOCK_MONOTONIC);
		if (send(fd, &look, sizeof(look), MSG_NOSIGNAL) != sizeof(look))
			return;
	}
}

/* ---- The parent -------------------------------------------------------------------------------
 */

int gpu_helper_begin(struct gpu_helper *h)
{
	*h = (struct gpu_helper){.asked = false};
	return aside_begin(&h->aside, answer, NULL, NULL);
}

int gpu_helper_fd(const struct gpu_helper *h)
{
	return h->aside.fd;
}

static bool send_question(struct gpu_helper *h, uint64_t now_ns)
{
	if (send(h->aside.fd, &h->next, sizeof(h->next), MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    sizeof(h->next))
		return false;
	h->asked = true;
	h->again = false;
	h->asked_ns = now_ns;
	return true;
}

bool gpu_helper_ask(struct gpu_helper *h, const struct gpu_question *question, uint64_t now_ns)
{
	h->next = *question;
	if (!h->asked)
		return send_question(h, now_ns);
	h->again = true;
	return now_ns - h->asked_ns < GPU_HELPER_PATIENCE_MS * 1000000ull;
}

int gpu_helper_take(struct gpu_helper *h, struct gpu_look *look, uint64_t *asked_ns,
		    uint64_t now_ns)
{
	const ssize_t n = recv(h->aside.fd, look, sizeof(*look), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != sizeof(*look) || look->n_devices > GPU_MAX || look->n_uses > GPU_MAX_USES)
		return -1;
	*asked_ns = h->asked_ns;
	h->asked = false;
	if (h->again && !send_question(h, now_ns))
		return -1;
	return 1;
}

bool gpu_helper_wait(const struct gpu_helper *h, int timeout_ms)
{
	return aside_has_answered(&h->aside, timeout_ms);
}

void gpu_helper_end(struct gpu_helper *h)
{
	aside_end(&h->aside);
	h->asked = h->again = false;
}

bool gpu_look_once(struct gpu_look *look, int timeout_ms)
{
	const struct gpu_question nobody = {.n_pids = 0};
	struct gpu_helper h;
	uint64_t asked_ns;
	bool answered;

	if (gpu_helper_begin(&h))
		return false;
	answered = gpu_helper_ask(&h, &nobody, 0) && gpu_helper_wait(&h, timeout_ms) &&
		   gpu_helper_take(&h, look, &asked_ns, 0) == 1;
	gpu_helper_end(&h);
	return answered;
}
