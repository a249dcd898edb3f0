// SPDX-License-Identifier: BSD-2-Clause
// The event sources that start on this machine, for Criterion tests.
#pragma once

#include "support/skip.hpp"

#include "sys/error.hpp"
#include "vm/sources.hpp"
#include "vm/userfaultfd.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace regcache::test {

#ifdef cr_skip_test
// Ends the test as skipped where there is no userfaultfd.
inline std::shared_ptr<Userfaultfd> userfaultfd_or_skip(bool watches_shared = false)
{
    try {
        return std::make_shared<Userfaultfd>(watches_shared);
    } catch (const Error &error) {
        skip(error.what());
        return nullptr;
    }
}
#endif

struct Started {
    std::string name; // "userfaultfd+shared" for one that also watches shared memory
    std::shared_ptr<Source> source;
    bool watches_shared = false;
};

// Every source that caches anything and starts here, one after the other: `visit(started)` for each. Says on stdout which
// don't start, and why. Returns how many there were.
template <class Visit>
unsigned each_source(Visit visit)
{
    unsigned count = 0;
    for (const SourceKind &kind : source_kinds()) {
        if (std::string_view(kind.name) == "none")
            continue;
        for (const bool is_shared : {false, true}) {
            SourceOptions options;
            options.caches_shared = is_shared;
            const std::string name = std::string(kind.name) + (is_shared ? "+shared" : "");
            std::shared_ptr<Source> source;
            try {
                source = kind.start(options);
            } catch (const Error &error) {
                std::printf("%s doesn't start here: %s\n", name.c_str(), error.what());
                std::fflush(stdout);
                continue;
            }
            ++count;
            visit(Started{name, std::move(source), is_shared});
        }
    }
    return count;
}

// Runs `body` on a thread that ends with it: what it gives away of its rights, it alone loses.
template <class Body>
void on_own_thread(Body body)
{
    std::thread(std::move(body)).join();
}

} // namespace regcache::test
