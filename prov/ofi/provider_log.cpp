// SPDX-License-Identifier: BSD-2-Clause
// The sink over fi_log.
#include "ofi/provider_log.hpp"

#include "sys/log.hpp"

#include <rdma/providers/fi_log.h>

#include <cerrno>

namespace regcache {
namespace {

const fi_provider *log_provider = nullptr; // set while the library is loaded, before there are threads

void write_line(LogLevel level, const char *line) noexcept
{
    const int saved_errno = errno;
    const fi_log_level to = level == LogLevel::Warning ? FI_LOG_WARN : level == LogLevel::Info ? FI_LOG_INFO : FI_LOG_DEBUG;
    if (fi_log_enabled(log_provider, to, FI_LOG_MR))
        fi_log(log_provider, to, FI_LOG_MR, "regcache", 0, "%s\n", line);
    errno = saved_errno;
}

} // namespace

void log_through(const fi_provider *provider) noexcept
{
    log_provider = provider;
    set_log_sink(provider ? write_line : nullptr);
}

} // namespace regcache
