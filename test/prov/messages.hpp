// SPDX-License-Identifier: BSD-2-Clause
// What the provider tells its user: the lines that it writes to libfabric's log and to standard error.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace regcache::test {

// Makes libfabric write warnings; before its first call, which is in need_pin() too.
inline void show_warnings() { setenv("FI_LOG_LEVEL", "warn", 1); }

// Standard error goes into memory as long as the object lives, and then where it went before; but for libfabric's own lines,
// one for each provider that doesn't answer.
class Messages {
public:
    Messages() : file_(memfd_create("stderr", MFD_CLOEXEC)), before_(dup(STDERR_FILENO))
    {
        std::fflush(stderr);
        dup2(file_, STDERR_FILENO);
    }
    ~Messages()
    {
        std::fflush(stderr);
        dup2(before_, STDERR_FILENO);
        close(before_);
        const std::string all = text();
        close(file_);
        std::fputs(all.c_str(), stderr);
    }
    Messages(const Messages &) = delete;
    Messages &operator=(const Messages &) = delete;

    std::string text() const
    {
        std::string all;
        for (const std::string &line : lines({}))
            all += line + '\n';
        return all;
    }
    // Lines that contain all of `parts`.
    std::vector<std::string> lines(const std::vector<std::string> &parts) const
    {
        std::vector<std::string> found;
        std::istringstream all(everything());
        for (std::string line; std::getline(all, line);) {
            bool has_all = line.rfind("libfabric:", 0) != 0 || line.find(":regcache:") != std::string::npos;
            for (const std::string &part : parts)
                has_all = has_all && line.find(part) != std::string::npos;
            if (has_all)
                found.push_back(line);
        }
        return found;
    }
    // How many warnings of regcache contain all of `parts`.
    std::size_t warnings(std::vector<std::string> parts = {}) const
    {
        parts.insert(parts.end(), {":regcache:", "<warn>"});
        return lines(parts).size();
    }
    // A number of the only statistics line, or -1.
    std::int64_t statistic(const std::string &name) const
    {
        const auto found = lines({"regcache: statistics {"});
        const std::string key = '"' + name + "\": ";
        const std::size_t at = found.size() == 1 ? found[0].find(key) : std::string::npos;
        return at == std::string::npos ? -1 : std::atoll(found[0].c_str() + at + key.size());
    }

private:
    std::string everything() const
    {
        std::fflush(stderr);
        std::string all;
        char part[4096];
        for (ssize_t got; (got = pread(file_, part, sizeof part, static_cast<off_t>(all.size()))) > 0;)
            all.append(part, static_cast<std::size_t>(got));
        return all;
    }

    int file_, before_;
};

} // namespace regcache::test
