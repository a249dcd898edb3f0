// SPDX-License-Identifier: BSD-2-Clause
// What tests may ask of the `pin` provider beyond fi_*: read and write memory through a registration, count what happened, and
// order misbehaviour. It compiles in C and C++. It doesn't open fabrics or register memory: that goes through libfabric.
//
// The provider (libpin-fi.so, found through FI_PROVIDER_PATH) pins real pages, so what is read through a registration are the
// pages it was made of, whatever is mapped at that address today. A cache hides pin's own objects from a test; therefore the
// calls are process-wide and take descriptors (fi_mr_desc) and keys (fi_mr_key), which a cache hands through:
//
//     const struct pin_ops *pin = pin_find();      // NULL: the provider isn't there; loads the providers when needed
//     char why[256];
//     if (pin->unusable(why, sizeof(why))) skip(why);
//     pin->read(fi_mr_desc(mr), buffer, copy, length);
//
// Calls that return ssize_t or int give a negative errno on failure. All are safe from many threads, hooks included.
#ifndef REGCACHE_TEST_PIN_H
#define REGCACHE_TEST_PIN_H

#include <dlfcn.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

// All since the start of the process or the last reset(), except the three that say "now".
struct pin_counters {
    uint64_t asked;              // fi_mr_reg/regv/regattr that reached pin, refused ones too
    uint64_t registered;         // of these, the ones that succeeded
    uint64_t refused;            // of these, the ones that failed, by order or in earnest
    uint64_t deregistered;       // fi_close of a registration that succeeded
    uint64_t live;               // registrations open now
    uint64_t bytes;              // bytes they cover now (as asked for, not rounded to pages)
    uint64_t objects;            // all other objects open now: fabrics, domains, endpoints, queues, ...
    uint64_t most_live;          // highest `live`
    uint64_t most_bytes;         // highest `bytes`
    uint64_t held;               // registrations that use held_pages (see struct pin_region)
    uint64_t refreshed;          // fi_mr_refresh
    uint64_t foreign_fids;       // fids handed to pin that aren't its own live objects: somebody forgot to swap
    uint64_t foreign_descs;      // descriptors in data transfer calls that aren't pin's own live ones
    uint64_t double_closes;      // fi_close of an object that was closed before (seen for the last 4096 closed objects)
    uint64_t calls_after_close;  // any other call on such an object
    uint64_t calls_in_child;     // registrations or deregistrations asked for in a forked child (refused or ignored; counted there)
    uint64_t reads;              // successful read/write through a registration, by these calls and by fi_read/fi_write
    uint64_t writes;
};

// One live registration, as pin was asked to make it.
struct pin_region {
    void *desc;
    uint64_t key;            // FI_KEY_NOTAVAIL until an FI_MR_ENDPOINT region is enabled
    const void *start;       // first iov
    size_t len;              // all iovs together
    size_t iov_count;
    uint64_t access;         // as asked for
    uint64_t given_access;   // what read/write allow: narrower after narrow_access()
    uint64_t offset;
    uint64_t requested_key;
    uint64_t flags;
    void *context;
    int iface;               // enum fi_hmem_iface
    int held_pages;          // 0: pinned for writing by io_uring; 1: read-only memory, its pages held by a pipe (README.md)
    int is_enabled;
    size_t auth_key_size;
    unsigned domain;         // number of the domain, counted from 1 in the order of fi_domain
};

// Which calls fail: none while first is 0; else the first-th from now on (1 is the next) and, if every isn't 0, each every-th
// after it. error is a positive errno value such as FI_ENOMEM.
struct pin_rule {
    uint64_t first;
    uint64_t every;
    int error;
};

enum pin_moment {
    PIN_BEFORE_REGISTER,    // nothing is pinned yet
    PIN_AFTER_REGISTER,     // pinned, not yet handed out (not called when registering failed)
    PIN_BEFORE_DEREGISTER,  // still pinned
    PIN_AFTER_DEREGISTER,   // unpinned
};

// Called with no lock of pin's held, on the thread that registers or deregisters: it may malloc, free, unmap, wait for a lock
// or register more. Not 0 (a positive errno value) makes the call fail in the two BEFORE moments; the AFTER moments ignore it.
typedef int (*pin_hook)(void *argument, enum pin_moment moment, const void *start, size_t len);

enum pin_keys {
    PIN_KEYS_FRESH,   // a key is never used twice (default)
    PIN_KEYS_LOWEST,  // the lowest free key: a closed key is handed out again at once
};

struct pin_ops {
    size_t size;  // of this structure, as the provider knows it

    // 0 when pages can be pinned here; else a negative errno and one line in `why` (io_uring off by sysctl, seccomp, ...).
    int (*unusable)(char *why, size_t why_size);

    // Copy `len` bytes from (read) or into (write) the *registered* pages that stood at `address` when the registration was
    // made. Returns len. -EINVAL: not a live descriptor; -EFAULT: outside the registration; -EACCES: the registration's rights
    // don't allow it (read needs FI_SEND, FI_WRITE or FI_REMOTE_READ; write needs FI_RECV, FI_READ or FI_REMOTE_WRITE).
    // A descriptor is never given out twice, so a stale one is always -EINVAL.
    ssize_t (*read)(void *desc, const void *address, void *buffer, size_t len);
    ssize_t (*write)(void *desc, const void *address, const void *buffer, size_t len);

    // read() without asking for rights: which pages the registration holds, also of one that may only be written.
    ssize_t (*peek)(void *desc, const void *address, void *buffer, size_t len);

    // The same as a peer sees it: by key, needing FI_REMOTE_READ or FI_REMOTE_WRITE. remote_address is the virtual address
    // under FI_MR_VIRT_ADDR, else it counts from the start of the region (plus its attr.offset). -ENOKEY: no live region has
    // the key (or it isn't enabled); -ENOTUNIQ: regions of two domains have it (application's keys only).
    ssize_t (*remote_read)(uint64_t key, uint64_t remote_address, void *buffer, size_t len);
    ssize_t (*remote_write)(uint64_t key, uint64_t remote_address, const void *buffer, size_t len);

    void (*counters)(struct pin_counters *counters);

    // How pin was asked to make a registration. 0, -EINVAL or -ENOKEY.
    int (*look)(void *desc, struct pin_region *region);
    int (*look_key)(uint64_t key, struct pin_region *region);
    // Calls f on a copy of each live registration, oldest first, with no lock held; stops when f returns not 0, returns that.
    int (*each)(int (*f)(void *argument, const struct pin_region *region), void *argument);

    // Back to what the environment says (FI_PIN_*, README.md): no rules, caps, hook; the counters start from 0 (but for
    // the three that say "now"; most_* start from these).
    void (*reset)(void);

    // Misbehaviour. NULL ends a rule. A refused deregistration leaves the registration as it was: it can be closed again.
    void (*fail_register)(const struct pin_rule *rule);
    void (*fail_deregister)(const struct pin_rule *rule);
    // A registration that would pass this many registrations or bytes is refused with -FI_ENOMEM. 0: no limit.
    void (*limit)(uint64_t max_live, uint64_t max_bytes);
    void (*keys)(enum pin_keys which);
    // Registrations made from now on give no more than these rights, whatever was asked. UINT64_MAX: as asked.
    void (*narrow_access)(uint64_t access);
    // What registrations need in earnest beyond the rights asked for: 1 makes every registration demand write access, so that
    // read-only memory is refused with -FI_EFAULT, as providers do that always pin for writing.
    void (*demand_write)(int is_demanded);
    // NULL: none. A call that has begun on another thread may still be running when this returns.
    void (*hook)(pin_hook hook, void *argument);

    // The class (FI_CLASS_*) that the newest foreign fid claims to have, to name it in a failure; 0: none was seen.
    uint64_t (*newest_foreign_class)(void);
};

#define PIN_LIBRARY "libpin-fi.so"
#define PIN_OPS_SYMBOL "pin_get_ops"

// The provider's one export beside fi_prov_ini.
const struct pin_ops *pin_get_ops(void);

// The calls of the provider that libfabric has loaded, or NULL. Makes libfabric load its providers when it hasn't yet.
static inline const struct pin_ops *pin_find(void)
{
    void *library = dlopen(PIN_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    if (!library) {
        struct fi_info *info = NULL;
        if (fi_getinfo(FI_VERSION(1, 14), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info) == 0)
            fi_freeinfo(info);
        library = dlopen(PIN_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    }
    if (!library)
        return NULL;
    const struct pin_ops *(*get)(void);
    *(void **)(&get) = dlsym(library, PIN_OPS_SYMBOL);
    const struct pin_ops *ops = get ? get() : NULL;
    dlclose(library);  // libfabric keeps its own hold until it ends
    return ops && ops->size >= sizeof(struct pin_ops) ? ops : NULL;
}

#ifdef __cplusplus
}
#endif

#endif
