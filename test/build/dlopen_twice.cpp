// SPDX-License-Identifier: BSD-2-Clause
// The provider can be loaded, asked for itself and unloaded, twice: nothing of it stays behind. Doesn't open anything.
#include "build/maps.hpp"

#include <rdma/providers/fi_prov.h>

#include <dlfcn.h>
#include <filesystem>
#include <string>

#include <criterion/criterion.h>

using regcache::test::module_path;

namespace {

long entries(const char *folder)
{
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// What the provider does for a program that only lists providers.
void load_once()
{
    void *library = dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    auto ini = reinterpret_cast<fi_provider *(*)()>(dlsym(library, "fi_prov_ini"));
    cr_assert(ini, "%s", dlerror());
    fi_provider *provider = ini();
    cr_assert(provider);
    cr_assert_str_eq(provider->name, "regcache");
    cr_assert_eq(provider->fi_version, fi_version());
    cr_assert(provider->getinfo && provider->fabric, "a mandatory entry point is missing");
    if (provider->cleanup)
        provider->cleanup();
    cr_assert_eq(dlclose(library), 0);
    cr_assert(!dlopen(module_path().c_str(), RTLD_NOW | RTLD_NOLOAD), "dlclose left the provider loaded");
}

} // namespace

Test(dlopen_twice, leaves_nothing_behind)
{
    // libfabric starts on its own first, so that what it keeps isn't counted against the provider.
    fi_freeinfo(fi_allocinfo());
    long descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    load_once();
    load_once();
    cr_assert_eq(entries("/proc/self/fd"), descriptors, "a descriptor stays open");
    cr_assert_eq(entries("/proc/self/task"), threads, "a thread goes on");
}
