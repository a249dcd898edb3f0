// SPDX-License-Identifier: BSD-2-Clause
// Tells address spaces that asked for it which of their pages have just gone. Runs in the kernel, at the end of the
// functions that take pages out of page tables: the address is still held, so that nobody can reuse it first.
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "queue_layout.h"

char program_license[] SEC("license") = "Dual BSD/GPL";

// What is read of the kernel's structures; where it stands there is found in the running kernel's BTF.
struct mm_struct;
struct vm_area_struct {
    struct mm_struct *vm_mm;
} __attribute__((preserve_access_index));
typedef struct {
    unsigned val;
} kuid_t;
struct cred {
    kuid_t uid, suid, euid, fsuid;
} __attribute__((preserve_access_index));
struct task_struct {
    int tgid;
    struct mm_struct *mm;
    const struct cred *cred;
} __attribute__((preserve_access_index));
struct pagetable_move_control { // since 6.16
    struct vm_area_struct *old;
    unsigned long old_addr, old_end, len_in;
} __attribute__((preserve_access_index));
struct bpf_iter_meta;
struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
} __attribute__((preserve_access_index));

// The queue of each address space that has one, by the address of its mm_struct.
struct queue_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __uint(value_size, sizeof(struct regcache_queue));
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
    __uint(max_entries, 4096);
    __type(key, __u64);
    __array(values, struct queue_map);
} queues SEC(".maps");

static __always_inline int is_watched(const struct regcache_queue *queue, __u64 begin, __u64 end)
{
    __u64 granule = begin >> REGCACHE_GRANULE_SHIFT;
    const __u64 last = (end - 1) >> REGCACHE_GRANULE_SHIFT;
    if (last - granule >= REGCACHE_GRANULES_LOOKED_AT)
        return 1;
    for (int i = 0; i < REGCACHE_GRANULES_LOOKED_AT; ++i) {
        if (queue->watched[granule % REGCACHE_GRANULES])
            return 1;
        if (++granule > last)
            break;
    }
    return 0;
}

static __always_inline int tell(struct mm_struct *mm, __u64 begin, __u64 end)
{
    const __u64 key = (__u64)mm;
    void *map = bpf_map_lookup_elem(&queues, &key);
    if (!map)
        return 0;
    const __u32 first = 0;
    struct regcache_queue *queue = bpf_map_lookup_elem(map, &first);
    if (!queue || begin >= end || !is_watched(queue, begin, end))
        return 0;
    const __u64 number = __sync_fetch_and_add(&queue->head, 1);
    struct regcache_slot *slot = &queue->slots[number % REGCACHE_SLOTS];
    __sync_lock_test_and_set(&slot->number, 0);
    slot->begin = begin;
    slot->end = end;
    __sync_lock_test_and_set(&slot->number, number + 1);
    return 0;
}

SEC("fexit/unmap_page_range") // to 6.x
int BPF_PROG(tell_unmap_page_range, void *tlb, struct vm_area_struct *vma, unsigned long begin, unsigned long end)
{
    return tell(vma->vm_mm, begin, end);
}

SEC("fexit/__zap_vma_range") // from 7.x
int BPF_PROG(tell_zap_vma_range, void *tlb, struct vm_area_struct *vma, unsigned long begin, unsigned long end)
{
    return tell(vma->vm_mm, begin, end);
}

SEC("fexit/__unmap_hugepage_range")
int BPF_PROG(tell_unmap_huge, void *tlb, struct vm_area_struct *vma, unsigned long begin, unsigned long end)
{
    return tell(vma->vm_mm, begin, end);
}

// mremap takes page-table entries along without zapping them, and MREMAP_DONTUNMAP zaps nothing afterwards.
SEC("fexit/move_page_tables") // to 6.15
int BPF_PROG(tell_move, struct vm_area_struct *vma, unsigned long begin, struct vm_area_struct *to_vma, unsigned long to,
             unsigned long bytes)
{
    return tell(vma->vm_mm, begin, begin + bytes);
}

SEC("fexit/move_page_tables") // from 6.16
int BPF_PROG(tell_move_of_control, struct pagetable_move_control *move)
{
    // old_addr has moved on by now; the end and the length stay.
    const __u64 end = BPF_CORE_READ(move, old_end);
    return tell(BPF_CORE_READ(move, old, vm_mm), end - BPF_CORE_READ(move, len_in), end);
}

// Asked by reading the iterator. A process that runs with any other user's rights has no queue: what it maps is not that
// user's business.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __uint(value_size, sizeof(struct regcache_question));
} questions SEC(".maps");

SEC("iter/task")
int find_mm(struct bpf_iter__task *context)
{
    struct task_struct *task = context->task;
    const __u32 first = 0;
    struct regcache_question *question = bpf_map_lookup_elem(&questions, &first);
    if (!task || !question || task->tgid != question->tgid || !task->mm)
        return 0;
    const struct cred *cred = task->cred;
    if (cred->uid.val == question->uid && cred->euid.val == question->uid && cred->suid.val == question->uid &&
        cred->fsuid.val == question->uid)
        question->mm = (__u64)task->mm;
    return 0;
}
