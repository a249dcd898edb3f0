// SPDX-License-Identifier: BSD-2-Clause
// Do the tests' fixtures see what they say they see?
#include "support/base.hpp"
#include "support/memory.hpp"
#include "support/skip.hpp"
#include "support/watchdog.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include <criterion/criterion.h>

using namespace regcache::test;

Test(fixtures, base_sees_threads_and_descriptors)
{
    const Base before = measure_base();
    {
        const Watchdog thread("nothing");
        const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
        const Base more = measure_base();
        cr_expect(more.threads == before.threads + 1, "%s", text_of(more).c_str());
        cr_expect(more.descriptors == before.descriptors + 1, "%s", text_of(more).c_str());
        close(descriptor);
    }
    cr_expect(is_back_at_base(before));
}

// The limit is 1 s times patience(), and nothing ends this test but the watchdog.
Test(fixtures, watchdog_ends_what_hangs, .signal = SIGABRT)
{
    const Watchdog watchdog("a test that hangs on purpose", 1);
    std::this_thread::sleep_for(std::chrono::seconds(100));
}

Test(fixtures, memory_of_each_kind_is_there_and_goes)
{
    const Base before = measure_base();
    for (const Kind kind : all_kinds()) {
        try {
            Mapping memory(kind, 3 * page_size() + 1);
            char *start = memory.data();
            cr_expect(memory.size() >= 4 * page_size(), "%s", name_of(kind));
            memory.fill('x');
            cr_expect(start[memory.size() - 1] == 'x', "%s", name_of(kind));
            Mapping moved = std::move(memory);
            memory = Mapping();
            cr_expect(moved.data() == start && start[0] == 'x', "%s", name_of(kind));
            moved.unmap();
            cr_expect(moved.data() == nullptr && moved.descriptor() == -1, "%s", name_of(kind));
            unsigned char in_core;
            cr_expect(mincore(start, page_size(), &in_core) == -1 && errno == ENOMEM, "%s is still mapped", name_of(kind));
            const Mapping again(kind, page_size(), start);
            cr_expect(again.data() == start, "%s", name_of(kind));
        } catch (const Unavailable &missing) {
            cr_log_info("%s: %s", name_of(kind), missing.what());
        }
    }
    cr_expect(is_back_at_base(before));
}

Test(fixtures, an_address_that_is_taken_is_not_mapped_over)
{
    const Mapping memory(Kind::Private, page_size());
    memory.fill('x');
    bool is_refused = false;
    try {
        const Mapping over(Kind::Private, page_size(), memory.data());
    } catch (const std::exception &) {
        is_refused = true;
    }
    cr_expect(is_refused);
    cr_expect(memory.data()[0] == 'x');
}

Test(fixtures, stack_memory_is_on_the_stack)
{
    const int here = 0;
    const bool is_near = on_stack(64 << 10, [&](char *memory, std::size_t len) {
        std::memset(memory, 'x', len);
        const auto distance = reinterpret_cast<std::intptr_t>(&here) - reinterpret_cast<std::intptr_t>(memory);
        return distance > -(1 << 20) && distance < (1 << 20);
    });
    // AddressSanitizer may keep locals elsewhere.
    cr_expect(is_near || sanitizer());
}
