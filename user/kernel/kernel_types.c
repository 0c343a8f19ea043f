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

/* A part of what is written. */
struct part {
	FILE *to;
	char *data;
	size_t size;
};

struct choice {
	const struct kernel_btf *kernel;
	struct part types, strings;
	uint32_t chosen;  /* types, with void */
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

static void choose(struct choice *c, uint32_t id);

static bool leads_to_composite(const struct kernel_btf *btf, uint32_t id)
{
	const struct btf_type *type = kernel_btf_type(btf, id);

	while (type && (btf_is_mod(type) || btf_is_typedef(type)))
		type = kernel_btf_type(btf, type->type);
	return !type || btf_is_composite(type) || btf_is_fwd(type);
}

/* Returns where the name is among the strings that are written. */
static uint32_t write_name(struct choice *c, uint32_t name_off)
{
	const char *name = kernel_btf_name(c->kernel, name_off);
	const long at = *name ? ftell(c->strings.to) : 0;

	if (*name)
		fwrite(name, strlen(name) + 1, 1, c->strings.to);
	return (uint32_t)at;
}

static uint32_t number_of(const struct choice *c, uint32_t id)
{
	return id < c->kernel->n ? c->number[id] : 0;
}

static void adapt_members(struct choice *c, struct btf_type *type)
{
	struct btf_member *member = btf_members(type);

	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		member[i].type = number_of(c, member[i].type);
		member[i].name_off = write_name(c, member[i].name_off);
	}
}

/* What a type consists of has other numbers among the chosen, and names are elsewhere. */
static void adapt(struct choice *c, struct btf_type *type)
{
	type->name_off = write_name(c, type->name_off);
	switch (btf_kind(type)) {
	case BTF_KIND_PTR:
		type->type =
			leads_to_composite(c->kernel, type->type) ? 0 : number_of(c, type->type);
		break;
	case BTF_KIND_ARRAY:
		btf_array(type)->type = number_of(c, btf_array(type)->type);
		btf_array(type)->index_type = number_of(c, btf_array(type)->index_type);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		adapt_members(c, type);
		break;
	case BTF_KIND_ENUM:
		for (uint32_t i = 0; i < btf_vlen(type); i++)
			btf_enum(type)[i].name_off = write_name(c, btf_enum(type)[i].name_off);
		break;
	case BTF_KIND_ENUM64:
		for (uint32_t i = 0; i < btf_vlen(type); i++)
			btf_enum64(type)[i].name_off = write_name(c, btf_enum64(type)[i].name_off);
		break;
	case BTF_KIND_FUNC_PROTO:
		type->type = 0;
		for (uint32_t i = 0; i < btf_vlen(type); i++)
			btf_params(type)[i] = (struct btf_param){0};
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		type->type = number_of(c, type->type);
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

/* Returns false without memory. */
static bool write_type(struct choice *c, const struct btf_type *from)
{
	const size_t size = sizeof(*from) + (size_t)kernel_btf_rest(from);
	struct btf_type *type = malloc(size);

	if (!type)
		return false;
	memcpy(type, from, size);
	adapt(c, type);
	fwrite(type, size, 1, c->types.to);
	free(type);
	return true;
}

/* Chooses a type, if it is not chosen yet. */
static void choose(struct choice *c, uint32_t id)
{
	const struct btf_type *type = kernel_btf_type(c->kernel, id);

	if (!type || c->number[id] || c->failed)
		return;
	choose_parts(c, type);
	c->failed |= !write_type(c, type);
	c->number[id] = c->chosen++;
}

static void choose_named(struct choice *c, const struct names *names)
{
	for (uint32_t id = 1; id < c->kernel->n && !c->failed; id++) {
		const struct btf_type *type = kernel_btf_type(c->kernel, id);

		if (is_named_in_programs(type) &&
		    has(names, kernel_btf_name(c->kernel, type->name_off)))
			choose(c, id);
	}
}

static bool begin_part(struct part *part)
{
	part->to = open_memstream(&part->data, &part->size);
	return part->to;
}

/* Returns false if not all of it could be written. */
static bool end_part(struct part *part)
{
	const bool failed = part->to && ferror(part->to);

	return part->to && !fclose(part->to) && !failed;
}

/* Returns what is to be freed; NULL without memory. */
static void *put_together(const struct part *types, const struct part *strings, size_t *size)
{
	const struct btf_header header = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(header),
		.type_len = (uint32_t)types->size,
		.str_off = (uint32_t)types->size,
		.str_len = (uint32_t)strings->size,
	};
	char *data;

	*size = sizeof(header) + types->size + strings->size;
	data = malloc(*size);
	if (!data)
		return NULL;
	memcpy(data, &header, sizeof(header));
	memcpy(data + sizeof(header), types->data, types->size);
	memcpy(data + sizeof(header) + types->size, strings->data, strings->size);
	return data;
}

int kernel_types_of(const struct kernel_btf *kernel, const struct btf *programs, void **data,
		    size_t *size)
{
	struct names names = {0};
	struct choice c = {
		.kernel = kernel,
		.chosen = 1,
		.number = calloc(kernel->n, sizeof(*c.number)),
	};
	bool types_ended, strings_ended;

	c.failed = !begin_part(&c.types) || !begin_part(&c.strings) || !c.number ||
		   !read_names(programs, &names);
	if (!c.failed) {
		fputc('\0', c.strings.to); /* that of what has no name */
		choose_named(&c, &names);
	}
	types_ended = end_part(&c.types);
	strings_ended = end_part(&c.strings);
	*data = types_ended && strings_ended && !c.failed ? put_together(&c.types, &c.strings, size)
							  : NULL;
	free(c.types.data);
	free(c.strings.data);
	free_names(&names);
	free(c.number);
	return *data ? 0 : -ENOMEM;
}

/* Returns 0, or -errno. */
static int read_data(struct kernel_types *types, int fd)
{
	size_t done = 0;
	ssize_t n = 1;

	types->data = malloc(types->size);
	if (!types->data)
		return -ENOMEM;
	while (done < types->size && n > 0) {
		n = read(fd, (char *)types->data + done, types->size - done);
		done += n > 0 ? (size_t)n : 0;
	}
	return done == types->size ? 0 : n < 0 ? -errno : -EINVAL;
}

/*
 * Where the kernel lets the file be mapped (6.18 does, 6.12 does not), its pages need not be read
 * into memory that is new. Returns 0, or -errno.
 */
static int get_data(struct kernel_types *types)
{
	const int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct stat file = {0};
	int err = 0;

	if (fd < 0 || fstat(fd, &file)) {
		err = -errno;
	} else {
		types->size = (size_t)file.st_size;
		types->data = mmap(NULL, types->size, PROT_READ, MAP_PRIVATE, fd, 0);
		types->is_mapped = types->data != MAP_FAILED;
		if (!types->is_mapped)
			err = read_data(types, fd);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

int kernel_types_read(struct kernel_types *types, struct error *err)
{
	int code = get_data(types);

	if (!code)
		code = kernel_btf_read(&types->all, types->data, types->size);
	if (code)
		return error_set(
			err,
			"cannot read the kernel's type information: %s; qprof-bpf needs a kernel "
			"with CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux)",
			strerror(-code));
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
	void *data;
	size_t size;
	bool written;
	int failed;

	if (kernel_types_of(&types->all, programs, &data, &size))
		return error_set(err, "out of memory");
	written = write(types->fd, data, size) == (ssize_t)size;
	failed = errno;
	free(data);
	return written ? 0 : take_all(types, failed, err);
}

uint32_t kernel_types_struct(const struct kernel_types *types, const char *name)
{
	return kernel_btf_find(&types->all, name, BTF_KIND_STRUCT);
}

void kernel_types_forget_others(struct kernel_types *types)
{
	kernel_btf_free(&types->all);
	if (types->is_mapped)
		munmap(types->data, types->size);
	else
		free(types->data);
	types->data = NULL;
	types->is_mapped = false;
}

void kernel_types_close(struct kernel_types *types)
{
	kernel_types_forget_others(types);
	if (types->fd >= 0)
		close(types->fd);
}
