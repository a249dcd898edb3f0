// SPDX-License-Identifier: BSD-2-Clause
// What tests ask about the files that are mapped into their own process. Doesn't change anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace regcache::test {

struct FileMapping {
    std::uintptr_t start = 0, end = 0;
    std::string rights; // "r-xp"
    std::uint64_t offset = 0;
    std::string path;
};

// The lines of /proc/self/maps that map a file.
inline std::vector<FileMapping> file_mappings()
{
    std::vector<FileMapping> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        FileMapping mapping;
        std::string device, inode;
        char dash = 0;
        words >> std::hex >> mapping.start >> dash >> mapping.end >> mapping.rights >> mapping.offset >> device >> inode;
        std::getline(words >> std::ws, mapping.path);
        if (!mapping.path.empty() && mapping.path[0] == '/')
            all.push_back(mapping);
    }
    return all;
}

// The provider under test, as /proc/self/maps would spell it.
inline std::string module_path()
{
    const char *build = std::getenv("BUILD_DIR");
    return std::filesystem::weakly_canonical(std::filesystem::path(build ? build : ".") / ".libs/libregcache-fi.so");
}

} // namespace regcache::test
