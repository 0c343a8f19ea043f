/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/amdgpu.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MAX_NODES = 256, /* of the topology, processors among them */
	MAX_CLIENTS = 64,
	FILE_MAX = 4096,
};

/* A device and its names in kfd and drm. */
struct card {
	uint32_t device; /* index in the look */
	uint64_t gpu_id; /* of kfd */
};

struct cards {
	const struct amdgpu_roots *roots;
	struct gpu_look *look;
	uint32_t first; /* device of the look that is AMD's */
	struct card items[GPU_MAX];
	size_t n;
};

/* ---- Files ------------------------------------------------------------------------------------
 */

/* Reads a file, with a NUL at its end. Returns false if it cannot be read. */
static bool __attribute__((format(printf, 3, 4)))
read_text(char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;
	size_t n;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(text, 1, size - 1, file);
	text[n] = '\0';
	fclose(file);
	return true;
}

/* A decimal number and, perhaps, a unit or the end of the line. */
static bool parse_number(const char *text, uint64_t *number)
{
	char *end;

	while (*text == ' ' || *text == '\t')
		text++;
	if (!isdigit((unsigned char)*text))
		return false;
	*number = strtoull(text, &end, 10);
	return end != text;
}

/* The value of a line "key value" or "key: value". */
static const char *value_of(const char *text, const char *key)
{
	const size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, len) && strchr(" :\t=", line[len]) && line[len])
			return line + len + strspn(line + len, " :\t=");
	}
	return NULL;
}

static bool number_of(const char *text, const char *key, uint64_t *number)
{
	const char *value = value_of(text, key);

	return value && parse_number(value, number);
}

static void copy_line(char *out, size_t size, const char *line)
{
	snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* ---- Devices ----------------------------------------------------------------------------------
 */

static struct card *add_card(struct cards *cards, const char *pci)
{
	struct gpu_look *look = cards->look;
	struct gpu_device *device;

	if (look->n_devices == GPU_MAX)
		return NULL;
	device = &look->devices[look->n_devices];
	*device = (struct gpu_device){.vendor = GPU_AMD, .index = (uint32_t)cards->n};
	snprintf(device->pci, sizeof(device->pci), "%s", pci);
	cards->items[cards->n] = (struct card){.device = look->n_devices++};
	return &cards->items[cards->n++];
}

/* Nodes of the topology are processors, too: these have no gpu_id. */
static void find_nodes(struct cards *cards)
{
	char text[FILE_MAX];
	uint64_t id, location, domain, unique;

	for (unsigned int node = 0; node < MAX_NODES; node++) {
		char pci[GPU_PCI_MAX];
		struct card *card;

		if (!read_text(text, sizeof(text), "%s/class/kfd/kfd/topology/nodes/%u/gpu_id",
			       cards->roots->sys, node))
			return;
		if (!parse_number(text, &id) || !id ||
		    !read_text(text, sizeof(text), "%s/class/kfd/kfd/topology/nodes/%u/properties",
			       cards->roots->sys, node) ||
		    !number_of(text, "location_id", &location))
			continue;
		if (!number_of(text, "domain", &domain))
			domain = 0;
		snprintf(pci, sizeof(pci), "%04x:%02x:%02x.%x", (unsigned int)domain & 0xffff,
			 (unsigned int)location >> 8 & 0xff, (unsigned int)location >> 3 & 0x1f,
			 (unsigned int)location & 7);
		card = add_card(cards, pci);
		if (!card)
			return;
		card->gpu_id = id;
		if (number_of(text, "unique_id", &unique) && unique)
			snprintf(cards->look->devices[card->device].uuid, GPU_TEXT_MAX,
				 "GPU-%016" PRIx64, unique);
	}
}

static struct card *card_at(struct cards *cards, const char *pci)
{
	for (size_t i = 0; i < cards->n; i++) {
		if (!strcmp(cards->look->devices[cards->items[i].device].pci, pci))
			return &cards->items[i];
	}
	return NULL;
}

/* The name that the vendor of the board gave, else the number of the chip. */
static void name_device(const struct cards *cards, const char *entry, struct gpu_device *device)
{
	char text[FILE_MAX];

	if (read_text(text, sizeof(text), "%s/class/drm/%s/device/product_name", cards->roots->sys,
		      entry) &&
	    text[0] && text[0] != '\n')
		copy_line(device->name, sizeof(device->name), text);
	else if (read_text(text, sizeof(text), "%s/class/drm/%s/device/device", cards->roots->sys,
			   entry))
		snprintf(device->name, sizeof(device->name), "AMD %.*s", (int)strcspn(text, "\n"),
			 text);
}

static void look_at_card(struct cards *cards, const char *entry)
{
	char text[FILE_MAX], pci[GPU_PCI_MAX];
	struct gpu_device *device;
	struct card *card;
	uint64_t total;
	const char *slot;

	if (!read_text(text, sizeof(text), "%s/class/drm/%s/device/mem_info_vram_total",
		       cards->roots->sys, entry) ||
	    !parse_number(text, &total) ||
	    !read_text(text, sizeof(text), "%s/class/drm/%s/device/uevent", cards->roots->sys,
		       entry))
		return;
	slot = value_of(text, "PCI_SLOT_NAME");
	if (!slot)
		return;
	copy_line(pci, sizeof(pci), slot);
	card = card_at(cards, pci);
	if (!card)
		card = add_card(cards, pci);
	if (!card)
		return;
	device = &cards->look->devices[card->device];
	device->total = total;
	name_device(cards, entry, device);
	device->knows_used =
		read_text(text, sizeof(text), "%s/class/drm/%s/device/mem_info_vram_used",
			  cards->roots->sys, entry) &&
		parse_number(text, &device->used);
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	const long one = strtol((*a)->d_name + strlen("card"), NULL, 10);
	const long other = strtol((*b)->d_name + strlen("card"), NULL, 10);

	return (one > other) - (one < other);
}

/* "card0", not its outputs: "card0-DP-1". */
static int is_card(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return !strncmp(name, "card", 4) && isdigit((unsigned char)name[4]) &&
	       strspn(name + 4, "0123456789") == strlen(name + 4);
}

static void find_cards(struct cards *cards)
{
	struct dirent **entries;
	char path[PATH_MAX];
	int n;

	snprintf(path, sizeof(path), "%s/class/drm", cards->roots->sys);
	n = scandir(path, &entries, is_card, by_number);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		look_at_card(cards, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

/* ---- Processes --------------------------------------------------------------------------------
 */

static void look_at_kfd_process(struct cards *cards, const char *pid)
{
	char text[64];
	uint64_t bytes;

	for (size_t i = 0; i < cards->n; i++) {
		const struct card *card = &cards->items[i];

		if (card->gpu_id &&
		    read_text(text, sizeof(text), "%s/class/kfd/kfd/proc/%s/vram_%" PRIu64,
			      cards->roots->sys, pid, card->gpu_id) &&
		    parse_number(text, &bytes))
			gpu_look_add_use(cards->look, card->device,
					 (uint32_t)strtoul(pid, NULL, 10), bytes);
	}
}

static void find_kfd_processes(struct cards *cards)
{
	const struct dirent *entry;
	char path[PATH_MAX];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/kfd/kfd/proc", cards->roots->sys);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			look_at_kfd_process(cards, entry->d_name);
	if (dir)
		closedir(dir);
}

/* What a process has by its open files: a client of a card counts once, however many lead to it. */
struct clients {
	struct {
		uint32_t device;
		uint64_t id;
	} seen[MAX_CLIENTS];
	size_t n;
	uint64_t bytes[GPU_MAX];
};

static bool is_new_client(struct clients *clients, uint32_t device, uint64_t id)
{
	for (size_t i = 0; i < clients->n; i++) {
		if (clients->seen[i].device == device && clients->seen[i].id == id)
			return false;
	}
	if (clients->n == MAX_CLIENTS)
		return false;
	clients->seen[clients->n].device = device;
	clients->seen[clients->n++].id = id;
	return true;
}

/* "drm-memory-vram: 1024 KiB": what is resident, by the name that the driver began with. */
static bool vram_of(const char *text, uint64_t *bytes)
{
	static const char *const keys[] = {"drm-memory-vram", "drm-resident-vram",
					   "drm-total-vram"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const char *value = value_of(text, keys[i]);
		const char *unit;

		if (!value || !parse_number(value, bytes))
			continue;
		unit = value + strspn(value, "0123456789");
		unit += strspn(unit, " \t");
		*bytes *= !strncmp(unit, "KiB", 3) ? 1024 : !strncmp(unit, "MiB", 3) ? 1 << 20 : 1;
		return true;
	}
	return false;
}

static void look_at_file(struct cards *cards, uint32_t pid, const char *fd, struct clients *clients)
{
	char text[FILE_MAX], pci[GPU_PCI_MAX];
	const struct card *card;
	const char *pdev;
	uint64_t id, bytes;

	if (!read_text(text, sizeof(text), "%s/%u/fdinfo/%s", cards->roots->proc, pid, fd))
		return;
	pdev = value_of(text, "drm-pdev");
	if (!pdev || !number_of(text, "drm-client-id", &id) || !vram_of(text, &bytes))
		return;
	copy_line(pci, sizeof(pci), pdev);
	card = card_at(cards, pci);
	if (card && is_new_client(clients, card->device, id))
		clients->bytes[card->device] += bytes;
}

static void look_at_files(struct cards *cards, uint32_t pid)
{
	struct clients clients = {.n = 0};
	char path[PATH_MAX], link[32];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%u/fd", cards->roots->proc, pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		const ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link));

		if (n > 9 && !memcmp(link, "/dev/dri/", 9))
			look_at_file(cards, pid, entry->d_name, &clients);
	}
	if (dir)
		closedir(dir);
	for (uint32_t i = cards->first; i < cards->look->n_devices; i++) {
		if (clients.bytes[i])
			gpu_look_add_use(cards->look, i, pid, clients.bytes[i]);
	}
}

void amdgpu_look(const struct amdgpu_roots *roots, const uint32_t *pids, size_t n,
		 struct gpu_look *look, char *why)
{
	struct cards cards = {.roots = roots, .look = look, .first = look->n_devices};

	find_nodes(&cards);
	find_cards(&cards);
	why[0] = '\0';
	if (!cards.n) {
		snprintf(why, GPU_WHY_MAX,
			 "the driver amdgpu shows no card in %s/class/drm or %s/class/kfd",
			 roots->sys, roots->sys);
		return;
	}
	find_kfd_processes(&cards);
	for (size_t i = 0; i < n; i++)
		look_at_files(&cards, pids[i]);
}
