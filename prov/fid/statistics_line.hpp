// SPDX-License-Identifier: BSD-2-Clause
// A cache's numbers as one line for people and scripts.
#pragma once

#include "cache/statistics.hpp"

#include <string>

namespace regcache {

// "regcache: statistics {...}" on standard error, in one write, so that the lines of several ranks don't mix.
void print_statistics_line(const std::string &domain, const char *source, const StatisticsSnapshot &numbers) noexcept;

} // namespace regcache
