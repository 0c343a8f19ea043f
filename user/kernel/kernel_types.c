/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/kernel_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/btf.h>

/* Names of types. */
struct names {
	char **name; /* sorted */
	size_t n;
};

struct choice {
	const struct btf *kernel;
	struct btf *chosen;
	uint32_t *number; /* of each type of the kernel, among the chosen; 0: not chosen */
	bool failed;
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_named_in_programs(const struct btf_type *type)
{
	switch (btf_kind(type)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_TYPEDEF:
		return type->name_off;
	default:
		return false;
	}
}

static void free_names(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->name[i]);
	free(names->name);
}

/* The part behind "___" tells apart what the programs know of a type, by kernel. */
static char *essential_name(const char *name)
{
	const char *flavour = strstr(name, "___");

	return flavour && flavour > name ? strndup(name, (size_t)(flavour - name)) : strdup(name);
}

static bool read_names(const struct btf *programs, struct names *names)
{
	const uint32_t types = btf__type_cnt(programs);

	names->name = calloc(types, sizeof(*names->name));
	for (uint32_t id = 1; names->name && id < types; id++) {
		const struct btf_type *type = btf__type_by_id(programs, id);

		if (!is_named_in_programs(type))
			continue;
		names->name[names->n] =
			essential_name(btf__name_by_offset(programs, type->name_off));
		if (!names->name[names->n])
			return false;
		names->n++;
	}
	if (names->name)
		qsort(names->name, names->n, sizeof(*names->name), compare);
	return names->name;
}

static bool has(const struct names *names, const char *name)
{
	return bsearch(&name, names->name, names->n, sizeof(*names->name), compare);
}

static uint32_t choose(struct choice *c, uint32_t id);

static bool leads_to_composite(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	while (type && (btf_is_mod(type) || btf_is_typedef(type)))
		type = btf__type_by_id(btf, type->type);
	return !type || btf_is_composite(type) || btf_is_fwd(type);
}

/* What a type consists of has other numbers among the chosen. */
static void renumber(struct choice *c, const struct btf_type *from, struct btf_type *to)
{
	const struct btf_member *member = btf_members(from);

	switch (btf_kind(from)) {
	case BTF_KIND_PTR:
		to->type = leads_to_composite(c->kernel, from->type) ? 0 : c->number[from->type];
		break;
	case BTF_KIND_ARRAY:
		btf_array(to)->type = c->number[btf_array(from)->type];
		btf_array(to)->index_type = c->number[btf_array(from)->index_type];
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (uint32_t i = 0; i < btf_vlen(from); i++)
			btf_members(to)[i].type = c->number[member[i].type];
		break;
	case BTF_KIND_FUNC_PROTO:
		to->type = 0;
		for (uint32_t i = 0; i < btf_vlen(from); i++)
			btf_params(to)[i].type = 0;
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		to->type = c->number[from->type];
		break;
	default: /* it is made of nothing else */
		break;
	}
}

/* Chooses what a type consists of. That ends: no type contains itself. */
static void choose_parts(struct choice *c, const struct btf_type *type)
{
	const struct btf_member *member = btf_members(type);

	switch (btf_kind(type)) {
	case BTF_KIND_PTR:
		if (!leads_to_composite(c->kernel, type->type))
			choose(c, type->type);
		break;
	case BTF_KIND_ARRAY:
		choose(c, btf_array(type)->type);
		choose(c, btf_array(type)->index_type);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (uint32_t i = 0; i < btf_vlen(type); i++)
			choose(c, member[i].type);
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		choose(c, type->type);
		break;
	default:
		break;
	}
}

/* Chooses a type, if it is not chosen yet. Returns its number among the chosen; 0 is void. */
static uint32_t choose(struct choice *c, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(c->kernel, id);
	int added;

	if (!id || c->number[id] || c->failed)
		return c->number[id];
	choose_parts(c, type);
	added = btf__add_type(c->chosen, c->kernel, type);
	if (added < 0) {
		c->failed = true;
		return 0;
	}
	c->number[id] = (uint32_t)added;
	/* It is ours, and libbpf has no call to change it. */
	renumber(c, type, (struct btf_type *)btf__type_by_id(c->chosen, c->number[id]));
	return c->number[id];
}

static void choose_named(struct choice *c, const struct names *names)
{
	const uint32_t types = btf__type_cnt(c->kernel);

	for (uint32_t id = 1; id < types && !c->failed; id++) {
		const struct btf_type *type = btf__type_by_id(c->kernel, id);

		if (is_named_in_programs(type) &&
		    has(names, btf__name_by_offset(c->kernel, type->name_off)))
			choose(c, id);
	}
}

struct btf *kernel_types_of(const struct btf *kernel, const struct btf *programs)
{
	struct names names = {0};
	struct choice c = {
		.kernel = kernel,
		.chosen = btf__new_empty(),
		.number = calloc(btf__type_cnt(kernel), sizeof(*c.number)),
	};

	c.failed = !c.chosen || !c.number || !read_names(programs, &names);
	if (!c.failed)
		choose_named(&c, &names);
	free_names(&names);
	free(c.number);
	if (!c.failed)
		return c.chosen;
	btf__free(c.chosen);
	return NULL;
}

/*
 * Where the kernel lets the file be mapped (6.18 does, 6.12 does not), its pages need not be read
 * one by one into memory that is new, too. NULL where it cannot be mapped.
 */
static struct btf *read_mapped(void)
{
	const int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct stat file = {0};
	struct btf *btf;
	void *at;

	if (fd < 0)
		return NULL;
	at = fstat(fd, &file) || file.st_size <= 0
		     ? MAP_FAILED
		     : mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return NULL;
	btf = btf__new(at, (uint32_t)file.st_size);
	munmap(at, (size_t)file.st_size);
	return btf;
}

int kernel_types_read(struct kernel_types *types, struct error *err)
{
	types->all = read_mapped();
	if (!types->all)
		types->all = btf__load_vmlinux_btf();
	if (!types->all)
		return error_set(
			err,
			"cannot read the kernel's type information: %s; qprof-bpf needs a kernel "
			"with CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux)",
			strerror(errno));
	types->fd = memfd_create("kernel-types", MFD_CLOEXEC);
	if (types->fd < 0)
		return error_set(err, "cannot make a file in memory: %s", strerror(errno));
	snprintf(types->path, sizeof(types->path), "/proc/self/fd/%d", types->fd);
	return 0;
}

/* A limit of the size of files (ulimit -f) is one of files in memory, too. All types take longer.
 */
static int take_all(const struct kernel_types *types, int failed, struct error *err)
{
	const int all = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	const bool taken = all >= 0 && dup3(all, types->fd, O_CLOEXEC) >= 0;

	if (all >= 0)
		close(all);
	return taken ? 0
		     : error_set(err, "cannot write the kernel's types to a file in memory: %s",
				 strerror(failed));
}

int kernel_types_choose(struct kernel_types *types, const struct btf *programs, struct error *err)
{
	struct btf *chosen = kernel_types_of(types->all, programs);
	uint32_t size = 0;
	const void *data = chosen ? btf__raw_data(chosen, &size) : NULL;
	const bool written = data && write(types->fd, data, size) == (ssize_t)size;
	const int failed = errno;

	btf__free(chosen);
	if (written)
		return 0;
	return data ? take_all(types, failed, err) : error_set(err, "out of memory");
}

uint32_t kernel_types_struct(const struct kernel_types *types, const char *name)
{
	const int id = btf__find_by_name_kind(types->all, name, BTF_KIND_STRUCT);

	return id < 0 ? 0 : (uint32_t)id;
}

void kernel_types_forget_others(struct kernel_types *types)
{
	if (!types->all)
		return;
	btf__free(types->all);
	types->all = NULL;
}

void kernel_types_close(struct kernel_types *types)
{
	kernel_types_forget_others(types);
	if (types->fd >= 0)
		close(types->fd);
}
