// SPDX-License-Identifier: BSD-2-Clause
// Formats a line and hands it to the sink.
#include "sys/log.hpp"

#include "sys/atomic.hpp"

#include <cstdarg>
#include <cstdio>

namespace regcache {
namespace {

Atomic<LogSink> sink{nullptr}; // written when the provider is loaded; orders nothing

} // namespace

void set_log_sink(LogSink new_sink) noexcept
{
    sink.store_relaxed(new_sink);
}

void log(LogLevel level, const char *format, ...) noexcept
{
    const LogSink to = sink.load_relaxed();
    if (!to)
        return;
    char line[1024]; // why none of the sources starts
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    to(level, line);
}

} // namespace regcache
