// SPDX-License-Identifier: BSD-2-Clause
// Where a line for the user goes: to one sink that the provider sets; without one, nowhere. Doesn't know libfabric.
#pragma once

namespace regcache {

enum class LogLevel { Warning, Info, Debug };

// Takes one finished line without a line feed. Called from any thread, never while a lock of the cache is held.
using LogSink = void (*)(LogLevel, const char *line);

void set_log_sink(LogSink sink) noexcept; // nullptr: drop everything
void log(LogLevel level, const char *format, ...) noexcept __attribute__((format(printf, 2, 3)));

} // namespace regcache
