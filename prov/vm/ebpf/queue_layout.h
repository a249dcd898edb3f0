/* SPDX-License-Identifier: BSD-2-Clause */
/* What the program in the kernel and the process share: one queue of events, and which memory it is to tell of. */
#ifndef REGCACHE_QUEUE_LAYOUT_H
#define REGCACHE_QUEUE_LAYOUT_H

#include <linux/types.h>

enum {
    REGCACHE_SLOTS = 4096,            /* a power of two */
    REGCACHE_GRANULES = 16384,        /* a power of two: granules of memory, hashed by their number */
    REGCACHE_GRANULE_SHIFT = 21,      /* a granule is 2 MiB */
    REGCACHE_GRANULES_LOOKED_AT = 32, /* a change of more granules is told in any case */
};

/* Event n is in slot n % REGCACHE_SLOTS. While it is written, `number` is 0; then it is n + 1. */
struct regcache_slot {
    __u64 number;
    __u64 begin, end;
    __u64 unused;
};

/* The kernel writes head and slots, the process writes watched: how many ranges it watches in each granule. */
struct regcache_queue {
    __u64 head; /* how many events there have been */
    __u64 unused[7];
    __u32 watched[REGCACHE_GRANULES];
    struct regcache_slot slots[REGCACHE_SLOTS];
};

/* Which mm_struct a process has, that runs with no other user's rights: asked once for each queue. */
struct regcache_question {
    __u32 tgid, uid;
    __u64 mm; /* the answer; 0: there is none */
};

#endif
