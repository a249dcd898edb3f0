// SPDX-License-Identifier: BSD-2-Clause
// Writes the line.
#include "fid/statistics_line.hpp"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace regcache {

void print_statistics_line(const std::string &domain, const char *source, const StatisticsSnapshot &numbers) noexcept
{
    char name[128];
    std::size_t length = 0;
    for (const char letter : domain) // names of devices and addresses; nothing in them needs more than this
        if (letter >= ' ' && letter != '"' && letter != '\\' && length + 1 < sizeof name)
            name[length++] = letter;
    name[length] = '\0';
    char line[1024];
    const int bytes = std::snprintf(
        line, sizeof line,
        "regcache: statistics {\"domain\": \"%s\", \"source\": \"%s\", \"asked\": %" PRIu64 ", \"hits\": %" PRIu64
        ", \"misses\": %" PRIu64 ", \"passed_through\": %" PRIu64 ", \"uncacheable\": %" PRIu64 ", \"overtaken\": %" PRIu64
        ", \"not_admitted\": %" PRIu64 ", \"invalidations\": %" PRIu64 ", \"evictions\": %" PRIu64 ", \"events\": %" PRIu64
        ", \"lost\": %" PRIu64 ", \"confirm_waits\": %" PRIu64 ", \"registrations\": %" PRIu64 ", \"refused\": %" PRIu64
        ", \"failed_deregistrations\": %" PRIu64 ", \"pinned_bytes\": %" PRIu64 ", \"most_pinned_bytes\": %" PRIu64
        ", \"unconfirmed\": %" PRIu64 "}\n",
        name, source, numbers.asked, numbers.hits, numbers.misses, numbers.passed_through, numbers.uncacheable,
        numbers.overtaken, numbers.not_admitted, numbers.invalidations, numbers.evictions, numbers.events, numbers.lost,
        numbers.confirm_waits, numbers.registrations, numbers.refused_below, numbers.failed_deregistrations,
        numbers.pinned_bytes, numbers.most_pinned_bytes, numbers.unconfirmed);
    if (bytes > 0 && ::write(STDERR_FILENO, line, static_cast<std::size_t>(bytes)) < 0) {
        // Nobody listens.
    }
}

} // namespace regcache
