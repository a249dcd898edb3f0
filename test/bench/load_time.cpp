// SPDX-License-Identifier: BSD-2-Clause
// What the provider costs every program that uses libfabric: loading it takes less than a millisecond of processor time
// more than loading a small library of libc's does. Both are loaded in turn, and medians are compared, so that a busy
// machine slows both.
#include "build/maps.hpp"

#include <rdma/providers/fi_prov.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <dlfcn.h>
#include <vector>

#include <criterion/criterion.h>

namespace {

constexpr int kRounds = 101;

double now_us()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

// Load a library and unload it; the provider is asked for itself in between, as libfabric does.
double load_us(const std::string &path, const char *ini)
{
    double before = now_us();
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    if (ini) {
        void *symbol = dlsym(library, ini);
        cr_assert(symbol, "%s", dlerror());
        reinterpret_cast<fi_provider *(*)()>(symbol)();
    }
    double took = now_us() - before;
    dlclose(library);
    return took;
}

double median(std::vector<double> values)
{
    std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
    return values[kRounds / 2];
}

} // namespace

Test(load_time, is_under_a_millisecond)
{
    if (const char *sanitizer = std::getenv("SANITIZER"); sanitizer && *sanitizer)
        cr_skip("a sanitizer slows loading");

    std::vector<double> ours, other;
    fi_version(); // links libfabric, so that it is loaded already
    for (int i = 0; i < kRounds; i++) {
        ours.push_back(load_us(regcache::test::module_path(), "fi_prov_ini"));
        other.push_back(load_us("libutil.so.1", nullptr));
    }
    std::printf("loading takes %.0f us, of libutil %.0f us (medians of %d)\n", median(ours), median(other), kRounds);
    cr_assert_lt(median(ours) - median(other), 1000.0);
}
