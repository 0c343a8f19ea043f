/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hash.h - uthash for keys that others choose: numbers of inodes and processes, names.
 *
 * - Its own hash function is known to all, so that somebody could choose a million keys of one
 *   bucket, and each search would pass by all of them. Ours has a key that nobody knows (SipHash).
 * - It survives a failed allocation: the element is not added, and its hh.tbl is NULL.
 *
 * Include this, never uthash.h.
 */
#ifndef QPROF_HASH_H
#define QPROF_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
	uint64_t words[2];
};

/* SipHash-2-4, https://www.aumasson.jp/siphash/siphash.pdf. Pure. */
uint64_t hash_siphash(const struct hash_key *key, const void *bytes, size_t size);

/* The same with the key of this program, which was chosen at its start. */
uint32_t hash_of(const void *bytes, size_t size);

#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = hash_of(keyptr, keylen))
#define HASH_NONFATAL_OOM		     1
#include <uthash.h>

#endif
