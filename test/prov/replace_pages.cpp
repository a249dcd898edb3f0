// SPDX-License-Identifier: BSD-2-Clause
// A plugin as programs load them, its symbols nobody else's: it unmaps memory of its host by its own calls to libc.
#include <sys/mman.h>

#include <cstddef>

// Other pages, all zero, at the same address. 0 when it worked.
extern "C" __attribute__((visibility("default"))) int replace_pages(void *start, std::size_t bytes)
{
    if (munmap(start, bytes) != 0)
        return -1;
    void *const got = mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return got == start ? 0 : -1;
}
