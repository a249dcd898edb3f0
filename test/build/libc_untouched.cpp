// SPDX-License-Identifier: BSD-2-Clause
// Loading the provider, asking it for what it offers and opening a domain patches no code: the executable pages of libc
// and of every other library are in memory what they are on disk.
#include "build/maps.hpp"

#include <rdma/fi_domain.h>

#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <criterion/criterion.h>

using namespace regcache::test;

namespace {

// How many of the executable mappings whose path contains the name there are; each is compared with its file.
int compare_code(const char *name)
{
    int seen = 0;
    for (const FileMapping &mapping : file_mappings()) {
        if (mapping.rights[2] != 'x' || mapping.path.find(name) == std::string::npos)
            continue;
        seen++;
        std::size_t length = mapping.end - mapping.start;
        std::vector<char> file(length);
        int fd = open(mapping.path.c_str(), O_RDONLY | O_CLOEXEC);
        cr_assert_geq(fd, 0, "can't open %s: %s", mapping.path.c_str(), std::strerror(errno));
        ssize_t got = pread(fd, file.data(), length, static_cast<off_t>(mapping.offset));
        close(fd);
        // The file may end within the mapping's last page.
        cr_assert_gt(got, 0, "can't read %s", mapping.path.c_str());
        const char *memory = reinterpret_cast<const char *>(mapping.start);
        for (std::size_t i = 0; i < static_cast<std::size_t>(got); i++)
            cr_assert_eq(memory[i], file[i], "%s is patched at offset %zu", mapping.path.c_str(),
                         static_cast<std::size_t>(mapping.offset) + i);
        cr_assert_eq(mapping.rights[1], '-', "the code of %s is writable", mapping.path.c_str());
    }
    return seen;
}

} // namespace

Test(libc_untouched, by_getinfo_and_domain)
{
    setenv("FI_REGCACHE_LOWER", "tcp", 1);
    fi_info *hints = fi_allocinfo(), *info = nullptr;
    cr_assert(hints);
    hints->fabric_attr->prov_name = strdup("regcache");
    int ret = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info);
    fi_freeinfo(hints);
    cr_assert_eq(ret, 0, "fi_getinfo doesn't find regcache: %s", fi_strerror(-ret));
    cr_assert_gt(compare_code("libregcache-fi.so"), 0, "libfabric has loaded another regcache than the one built here");

    fid_fabric *fabric = nullptr;
    fid_domain *domain = nullptr;
    cr_assert_eq(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    cr_assert_eq(fi_domain(fabric, info, &domain, nullptr), 0);
    cr_assert_gt(compare_code("/libc.so.6"), 0, "libc's code isn't in /proc/self/maps");
    compare_code("/");
    cr_assert_eq(fi_close(&domain->fid), 0);
    cr_assert_eq(fi_close(&fabric->fid), 0);
    fi_freeinfo(info);
    cr_assert_gt(compare_code("/libc.so.6"), 0);
}
