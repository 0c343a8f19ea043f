/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * item_source.h - the program that tells when processes come by the places that items of their
 * recipes name. It is loaded when the first process uses one,
 * unless the engine expected that.
 */
#ifndef QPROF_ITEM_SOURCE_H
#define QPROF_ITEM_SOURCE_H

#include <stdint.h>

#include "base/error.h"
#include "bpf/wire.h"

struct item_source;
struct bpf_program;
struct qprof_bpf;

/* Loads the program. Returns NULL, and *err: this kernel cannot do it. */
struct item_source *item_source_new(const struct qprof_bpf *engines, const char *types,
				    struct error *err);
void item_source_free(struct item_source *source);
/* Returns the object that has the program; NULL for NULL. */
const struct qprof_bpf *item_source_own(const struct item_source *source);
struct bpf_program *item_source_program(const struct item_source *source);

/* Says what a site's cookie means. Call it before the site is attached. Returns 0, or -errno. */
int item_source_set_site(struct item_source *source, uint32_t index,
			 const struct wire_item_site *site);
/* Nothing is told of the site any more. */
void item_source_drop_site(struct item_source *source, uint32_t index);
/* From now on it is told when the process comes by a place of the item. tgid: or of a job, whose
 * sites are its own; see struct wire_item_key. Returns 0, or -errno. */
int item_source_use(struct item_source *source, uint32_t tgid, uint32_t item, uint64_t started_ns);
/* No more. Returns how many hits were not told of, since there were too many. */
uint64_t item_source_leave(struct item_source *source, uint32_t tgid, uint32_t item);
/* Forgets which calls of n items, from that one on, have not returned, of all processes. */
void item_source_forget_calls(struct item_source *source, uint32_t first, uint32_t n);

#endif
