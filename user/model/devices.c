// SPDX-License-Identifier: GPL-2.0-only
#include "model/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/array.h"
#include "base/text.h"
#include "model/stretches.h"

/* ---- Records ----------------------------------------------------------------------------------
 */

/* The kernel side tells of no more than WIRE_DEVICES. Returns NULL when out of memory. */
static struct known_device *known(struct devices *devices, uint32_t device)
{
	void *list;

	for (size_t i = 0; i < devices->n; i++)
		if (devices->list[i].device == device)
			return &devices->list[i];
	list = array_reserve(devices->list, devices->n, &devices->cap, sizeof(*devices->list));
	if (!list)
		return NULL;
	devices->list = list;
	devices->list[devices->n] = (struct known_device){.device = device};
	return &devices->list[devices->n++];
}

static int set_name(struct known_device *known, const char *name)
{
	const size_t room = strlen(name) * TEXT_GROWTH + 1;

	if (known->name)
		return 0;
	known->name = malloc(room);
	if (!known->name)
		return -ENOMEM;
	text_repair(known->name, room, name, strlen(name), NULL);
	return 0;
}

/* As raise_to(), of what is on the wire. */
static void raise_one(__u64 *to, __u64 from)
{
	if (*to < from)
		*to = from;
}

/* Records of two CPUs may come in the wrong order. */
static void raise_sums(struct wire_device_sums *to, const struct wire_device_sums *from)
{
	for (size_t way = 0; way < WIRE_DEVICE_WAYS; way++) {
		raise_one(&to->of[way].n, from->of[way].n);
		raise_one(&to->of[way].bytes, from->of[way].bytes);
		raise_one(&to->of[way].timed, from->of[way].timed);
		raise_one(&to->of[way].ns, from->of[way].ns);
		raise_one(&to->of[way].max_ns, from->of[way].max_ns);
	}
	raise_one(&to->busy_ns, from->busy_ns);
}

int devices_feed(struct devices *devices, const struct wire_device *record)
{
	struct known_device *found = known(devices, record->device);
	struct device_told *told = NULL;

	if (!found || set_name(found, record->name))
		return -ENOMEM;
	raise_sums(&found->sums, &record->sums);
	if (record->flags & WIRE_STORED_LAST) {
		found->pub.open = record->open;
		return 0;
	}
	if (devices->n_told < DEVICES_MAX_TOLD)
		told = array_reserve(found->told, found->n_told, &found->cap, sizeof(*told));
	if (!told) {
		found->steps_lost = true;
		return 0;
	}
	found->told = told;
	told[found->n_told++] =
		(struct device_told){.time_ns = record->h.time_ns, .sums = record->sums};
	devices->n_told++;
	return 0;
}

/* ---- Time -------------------------------------------------------------------------------------
 */

/* Returns the longest time that the counter at this place is for. */
static uint64_t longest_at(size_t place)
{
	const size_t parts = WIRE_DEVICE_PARTS, power = place / parts;
	const uint64_t width = power ? 1ull << (power - 1) : 1;
	const uint64_t first = power ? (parts + place % parts) * width : place;

	return (first + width) * 1000 - 1;
}

/* Returns the time that a part of the requests took at most: a counter's longest. */
static uint64_t quantile(const __u64 times[WIRE_DEVICE_TIMES], uint64_t percent, uint64_t max_ns)
{
	uint64_t all = 0, seen = 0, longest;

	for (size_t i = 0; i < WIRE_DEVICE_TIMES; i++)
		all += times[i];
	for (size_t i = 0; i < WIRE_DEVICE_TIMES; i++) {
		seen += times[i];
		if (!times[i] || seen * 100 < all * percent)
			continue;
		longest = longest_at(i);
		return longest < max_ns && i + 1 < WIRE_DEVICE_TIMES ? longest : max_ns;
	}
	return max_ns;
}

int devices_feed_times(struct devices *devices, const struct wire_device_times *record)
{
	struct known_device *found = known(devices, record->device);

	if (!found)
		return -ENOMEM;
	for (size_t way = 0; way < WIRE_DEVICE_WAYS; way++) {
		const uint64_t max_ns = found->sums.of[way].max_ns;

		found->pub.of[way].p50_ns = quantile(record->n[way], 50, max_ns);
		found->pub.of[way].p99_ns = quantile(record->n[way], 99, max_ns);
	}
	return 0;
}

/* ---- Phases -----------------------------------------------------------------------------------
 */

static int by_time(const void *a, const void *b)
{
	const struct device_told *p = a, *q = b;

	return (p->time_ns > q->time_ns) - (p->time_ns < q->time_ns);
}

/* The sums were read before the time, so of two CPUs the later record may have the smaller ones. */
static void sort_told(struct known_device *device)
{
	array_sort(device->told, device->n_told, sizeof(*device->told), by_time);
	for (size_t i = 1; i < device->n_told; i++)
		raise_sums(&device->told[i].sums, &device->told[i - 1].sums);
}

/* Returns what it had done by that time: what the next record says. */
static const struct wire_device_sums *done_by(const struct known_device *device, uint64_t time_ns)
{
	size_t low = 0, high = device->n_told;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (device->told[middle].time_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low < device->n_told ? &device->told[low].sums : &device->sums;
}

static void add_use(struct profile_device_use *use, const struct wire_device_sums *from,
		    const struct wire_device_sums *to)
{
	use->busy_ns += since(from->busy_ns, to->busy_ns);
	for (size_t way = 0; way < WIRE_DEVICE_WAYS; way++) {
		use->of[way].n += since(from->of[way].n, to->of[way].n);
		use->of[way].bytes += since(from->of[way].bytes, to->of[way].bytes);
		use->of[way].timed += since(from->of[way].timed, to->of[way].timed);
		use->of[way].ns += since(from->of[way].ns, to->of[way].ns);
	}
}

static bool is_used(const struct profile_device_use *use)
{
	return use->of[WIRE_DEVICE_READ].n || use->of[WIRE_DEVICE_WRITE].n;
}

static int by_busy_use(const void *a, const void *b)
{
	const struct profile_device_use *p = a, *q = b;

	return (p->busy_ns < q->busy_ns) - (p->busy_ns > q->busy_ns);
}

/* Keeps the phases in which it was busy longest. */
static int find_uses(struct known_device *device, const struct stretch *list, size_t n)
{
	struct profile_device_use *uses = calloc(n + 1, sizeof(*uses));
	size_t n_uses = 0;

	if (!uses)
		return -ENOMEM;
	sort_told(device);
	for (size_t i = 0; i < n; i++) {
		if (!i || strcmp(list[i].name, list[i - 1].name) != 0) {
			n_uses += is_used(&uses[n_uses]);
			uses[n_uses] = (struct profile_device_use){.name = list[i].name};
		}
		uses[n_uses].ns += since(list[i].start_ns, list[i].end_ns);
		add_use(&uses[n_uses], done_by(device, list[i].start_ns),
			done_by(device, list[i].end_ns));
	}
	n_uses += is_used(&uses[n_uses]);
	array_sort(uses, n_uses, sizeof(*uses), by_busy_use);
	device->uses = uses;
	device->pub.uses = uses;
	device->pub.n_uses = n_uses < PROFILE_MAX_DEVICE_USES ? n_uses : PROFILE_MAX_DEVICE_USES;
	return 0;
}

/* ---- The end ----------------------------------------------------------------------------------
 */

static void publish(struct known_device *device)
{
	struct profile_device *pub = &device->pub;

	pub->name = device->name;
	pub->busy_ns = device->sums.busy_ns;
	for (size_t way = 0; way < WIRE_DEVICE_WAYS; way++) {
		pub->of[way].n = device->sums.of[way].n;
		pub->of[way].bytes = device->sums.of[way].bytes;
		pub->of[way].timed = device->sums.of[way].timed;
		pub->of[way].ns = device->sums.of[way].ns;
		pub->of[way].max_ns = device->sums.of[way].max_ns;
	}
}

static int by_busy(const void *a, const void *b)
{
	const struct profile_device *p = a, *q = b;

	return (p->busy_ns < q->busy_ns) - (p->busy_ns > q->busy_ns);
}

int devices_finish(struct devices *devices, const struct profile_phase *phases, size_t n_phases)
{
	struct stretch *stretches = calloc(n_phases + 1, sizeof(*stretches));
	size_t n;
	int err = 0;

	devices->pubs = calloc(devices->n + 1, sizeof(*devices->pubs));
	if (!stretches || !devices->pubs) {
		free(stretches);
		return -ENOMEM;
	}
	n = stretches_find(stretches, phases, n_phases);
	for (size_t i = 0; i < devices->n && !err; i++) {
		struct known_device *device = &devices->list[i];

		publish(device);
		if (!device->steps_lost)
			err = find_uses(device, stretches, n);
		devices->pubs[i] = device->pub;
	}
	free(stretches);
	array_sort(devices->pubs, devices->n, sizeof(*devices->pubs), by_busy);
	return err;
}

void devices_free(struct devices *devices)
{
	for (size_t i = 0; i < devices->n; i++) {
		free(devices->list[i].name);
		free(devices->list[i].uses);
		free(devices->list[i].told);
	}
	free(devices->list);
	free(devices->pubs);
}
