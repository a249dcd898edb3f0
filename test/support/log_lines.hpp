// SPDX-License-Identifier: BSD-2-Clause
// Which lines the core has logged. One at a time: it takes the place of the sink.
#pragma once

#include "sys/log.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace regcache::test {

class LogLines {
public:
    LogLines()
    {
        const std::lock_guard guard(mutex());
        lines().clear();
        set_log_sink([](LogLevel level, const char *line) {
            const std::lock_guard locked(mutex());
            lines().emplace_back(level, line);
        });
    }
    ~LogLines() { set_log_sink(nullptr); }
    LogLines(const LogLines &) = delete;
    LogLines &operator=(const LogLines &) = delete;

    // Lines of that level that contain `part`.
    std::size_t count(LogLevel level, const std::string &part = "") const
    {
        const std::lock_guard guard(mutex());
        std::size_t found = 0;
        for (const auto &[its_level, line] : lines())
            found += its_level == level && line.find(part) != std::string::npos;
        return found;
    }
    std::size_t warnings(const std::string &part = "") const { return count(LogLevel::Warning, part); }
    std::size_t all() const
    {
        const std::lock_guard guard(mutex());
        return lines().size();
    }
    std::string text() const
    {
        const std::lock_guard guard(mutex());
        std::string text;
        for (const auto &[level, line] : lines())
            text += line + '\n';
        return text;
    }

private:
    static std::mutex &mutex()
    {
        static std::mutex the_mutex;
        return the_mutex;
    }
    static std::vector<std::pair<LogLevel, std::string>> &lines()
    {
        static std::vector<std::pair<LogLevel, std::string>> the_lines;
        return the_lines;
    }
};

} // namespace regcache::test
