// SPDX-License-Identifier: BSD-2-Clause
// How a test says that it can't see here what it wants to see: always with the reason. For Criterion tests skip_*(), for
// programs with a main of their own skip_program_*(), which end with status 77.
#pragma once

#include "support/base.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#ifdef __has_include
#if __has_include(<criterion/criterion.h>)
#include <criterion/criterion.h>
#endif
#endif

namespace regcache::test {

[[noreturn]] inline void skip_program(const std::string &reason)
{
    std::printf("skipped: %s\n", reason.c_str());
    std::fflush(stdout);
    std::_Exit(77);
}

inline std::string under_sanitizer(const std::string &reason)
{
    return "built with the " + std::string(sanitizer() ? sanitizer() : "no") + " sanitizer: " + reason;
}

inline void skip_program_under_sanitizer(const std::string &reason)
{
    if (sanitizer())
        skip_program(under_sanitizer(reason));
}

#ifdef cr_skip_test
// Doesn't return.
inline void skip(const std::string &reason) { cr_skip_test("%s", reason.c_str()); }

inline void skip_under_sanitizer(const std::string &reason)
{
    if (sanitizer())
        skip(under_sanitizer(reason));
}
#endif

} // namespace regcache::test
