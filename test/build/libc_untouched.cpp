// SPDX-License-Identifier: BSD-2-Clause
// Loading the provider, asking it for what it offers and opening a domain patches no code: the executable pages of libc
// and of every other library are in memory what they are on disk. A plain program, for Criterion patches libraries itself.
#include "build/maps.hpp"

#include <rdma/fi_domain.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace regcache::test;

namespace {

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    std::vprintf(format, args);
    va_end(args);
    std::puts("");
    std::exit(1);
}

void check(int ret, const char *call)
{
    if (ret)
        fail("%s: %s", call, fi_strerror(-ret));
}

void compare(const FileMapping &mapping)
{
    const char *path = mapping.path.c_str();
    std::vector<char> file(mapping.end - mapping.start);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail("can't open %s: %s", path, std::strerror(errno));
    // The file may end within the mapping's last page.
    ssize_t got = pread(fd, file.data(), file.size(), static_cast<off_t>(mapping.offset));
    close(fd);
    if (got <= 0)
        fail("can't read %s", path);
    const char *memory = reinterpret_cast<const char *>(mapping.start);
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); i++)
        if (memory[i] != file[i])
            fail("%s is patched at offset %#zx", path, static_cast<std::size_t>(mapping.offset) + i);
}

// Every library's code is compared with its file; those named must be among them.
void compare_all_code(const std::vector<std::string> &expected)
{
    std::vector<FileMapping> code;
    for (const FileMapping &mapping : file_mappings())
        if (mapping.rights[2] == 'x')
            code.push_back(mapping);
    for (const FileMapping &mapping : code)
        compare(mapping);
    for (const std::string &name : expected) {
        bool seen = false;
        for (const FileMapping &mapping : code)
            seen |= mapping.path.ends_with(name);
        if (!seen)
            fail("%s isn't loaded, so it wasn't compared", name.c_str());
    }
    std::printf("%zu code mappings are as on disk\n", code.size());
}

} // namespace

int main()
{
    setenv("FI_REGCACHE_LOWER", "tcp", 1);
    fi_info *hints = fi_allocinfo(), *info = nullptr;
    if (!hints)
        fail("no memory");
    hints->fabric_attr->prov_name = strdup("regcache");
    check(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info), "fi_getinfo doesn't find regcache");
    fi_freeinfo(hints);
    compare_all_code({module_path(), "/libc.so.6"});

    fid_fabric *fabric = nullptr;
    fid_domain *domain = nullptr;
    check(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    check(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
    compare_all_code({module_path(), "/libc.so.6"});
    check(fi_close(&domain->fid), "closing the domain");
    check(fi_close(&fabric->fid), "closing the fabric");
    fi_freeinfo(info);
    compare_all_code({"/libc.so.6"});
}
