/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/wake.h"

#include <sys/timerfd.h>
#include <unistd.h>

int timer_new(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

void timer_set(int fd, uint64_t ns)
{
	const struct itimerspec once = {
		.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};

	timerfd_settime(fd, 0, &once, NULL);
}

void timer_clear(int fd)
{
	uint64_t expirations;

	if (read(fd, &expirations, sizeof(expirations)) < 0)
		return; /* it was set anew meanwhile */
}

int64_t realtime_offset_ns(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
}
