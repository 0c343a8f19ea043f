/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/kernel_btf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

int32_t kernel_btf_rest(const struct btf_type *type)
{
	const int32_t n = btf_vlen(type);

	switch (btf_kind(type)) {
	case BTF_KIND_FWD:
	case BTF_KIND_PTR:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
		return sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * (int32_t)sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * (int32_t)sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * (int32_t)sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * (int32_t)sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return n * (int32_t)sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(struct btf_decl_tag);
	default:
		return -1;
	}
}

/* Notes where each type begins. Returns 0, or -errno. */
static int index_types(struct kernel_btf *btf, uint32_t size)
{
	const uint32_t head = sizeof(struct btf_type);
	uint32_t at = 0;

	/* As many as there can be; what is not used of it takes no memory. */
	btf->at = malloc((size / head + 2) * sizeof(*btf->at));
	if (!btf->at)
		return -ENOMEM;
	for (btf->n = 1; at < size; btf->n++) {
		const struct btf_type *type = (const void *)(btf->types + at);
		const int32_t rest = size - at < head ? -1 : kernel_btf_rest(type);

		if (rest < 0 || (uint32_t)rest > size - at - head)
			return -EINVAL;
		btf->at[btf->n] = at;
		at += head + (uint32_t)rest;
	}
	return 0;
}

/* Returns true if a section of the data is within it, at a place fit for what it has. */
static bool is_within(const struct btf_header *h, size_t size, uint32_t at, uint32_t len,
		      uint32_t alignment)
{
	return !(h->hdr_len % alignment) && !(at % alignment) && h->hdr_len <= size &&
	       at <= size - h->hdr_len && len <= size - h->hdr_len - at;
}

int kernel_btf_read(struct kernel_btf *btf, const void *data, size_t size)
{
	const struct btf_header *h = data;
	const char *strings;
	int err;

	*btf = (struct kernel_btf){0};
	if (size < sizeof(*h) || h->magic != BTF_MAGIC || h->version != BTF_VERSION ||
	    h->hdr_len < sizeof(*h) ||
	    !is_within(h, size, h->type_off, h->type_len, sizeof(uint32_t)) ||
	    !is_within(h, size, h->str_off, h->str_len, 1))
		return -EINVAL;
	btf->types = (const unsigned char *)data + h->hdr_len + h->type_off;
	strings = (const char *)data + h->hdr_len + h->str_off;
	if (!h->str_len || strings[0] || strings[h->str_len - 1])
		return -EINVAL;
	btf->strings = strings;
	btf->strings_size = h->str_len;
	err = index_types(btf, h->type_len);
	if (err)
		kernel_btf_free(btf);
	return err;
}

void kernel_btf_free(struct kernel_btf *btf)
{
	free(btf->at);
	*btf = (struct kernel_btf){0};
}

const struct btf_type *kernel_btf_type(const struct kernel_btf *btf, uint32_t id)
{
	return id && id < btf->n ? (const void *)(btf->types + btf->at[id]) : NULL;
}

const char *kernel_btf_name(const struct kernel_btf *btf, uint32_t name_off)
{
	return name_off < btf->strings_size ? btf->strings + name_off : "";
}

uint32_t kernel_btf_find(const struct kernel_btf *btf, const char *name, uint32_t kind)
{
	for (uint32_t id = 1; id < btf->n; id++) {
		const struct btf_type *type = kernel_btf_type(btf, id);

		if (btf_kind(type) == kind && !strcmp(kernel_btf_name(btf, type->name_off), name))
			return id;
	}
	return 0;
}
