// SPDX-License-Identifier: BSD-2-Clause
// Which fids are pin's own live objects, which were closed, and who still needs whom. Doesn't know what the objects do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

namespace pin {

// Counts of wrong use; each is one more reason for a test to fail.
struct Misuse {
    std::atomic<std::uint64_t> foreign_fids{0};
    std::atomic<std::uint64_t> foreign_descs{0};
    std::atomic<std::uint64_t> double_closes{0};
    std::atomic<std::uint64_t> calls_after_close{0};
    std::atomic<std::uint64_t> calls_in_child{0};
    std::atomic<std::uint64_t> newest_foreign_class{0};
};

// A T that is never destroyed: libfabric unloads its providers after the program's static objects are gone. Its bury()
// frees what it holds then.
template <class T>
T &immortal() noexcept
{
    alignas(T) static std::byte storage[sizeof(T)];
    static T *const object = new (storage) T;
    return *object;
}

// Any thread. A closed object stays in memory, out of use, until 4096 others were closed after it: so that a second close
// is counted and doesn't crash.
class Objects {
public:
    using Destroy = void (*)(fid *);
    using IsClass = bool (*)(std::size_t fclass);

    // May throw bad_alloc. The parent (nullptr: none) can't be closed before the object.
    void add(fid *f, fid *parent, Destroy destroy);
    // -FI_EBUSY while children or holders are left, -FI_EINVAL (and counted) when it is closed already; else the object is dead.
    int remove(fid *f);

    // Looks at the pointer's target only when it is an own live object. Counts what isn't.
    bool is_mine(const fid *f, IsClass is_class);
    // Counts a double close when it is one.
    bool is_closed(const fid *f);

    // One object needs another (an endpoint its queues) until it releases it.
    void hold(fid *f);
    void release(fid *f);

    std::uint64_t live();
    // Frees what is dead; the library is about to go.
    void bury();

    Misuse &misuse() noexcept { return misuse_; }
    void forget_misuse() noexcept;
    std::mutex &mutex() noexcept { return mutex_; } // for the fork handlers

private:
    static constexpr std::size_t kGraves = 4096;
    struct Entry {
        fid *parent;
        std::size_t fclass;
        unsigned needed_by;
        Destroy destroy;
    };

    void note_foreign(const fid *f);

    std::mutex mutex_;
    std::unordered_map<const fid *, Entry> live_;
    std::unordered_set<const fid *> dead_;
    std::list<std::pair<fid *, Destroy>> graves_;
    Misuse misuse_;
};

Objects &objects() noexcept;

// How many forks lie between this process and the one that loaded pin: objects of an earlier one aren't ours to use.
unsigned fork_generation() noexcept;

} // namespace pin
