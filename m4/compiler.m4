# SPDX-License-Identifier: BSD-2-Clause
# Is the compiler new enough, and how is it asked for C++20 and threads?

AC_DEFUN([REGCACHE_COMPILER], [
    AC_MSG_CHECKING([whether $CXX is g++ 12, clang 14 or newer])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
        #if defined(__clang__)
        #if __clang_major__ < 14
        #error clang is too old
        #endif
        #elif !defined(__GNUC__) || __GNUC__ < 12
        #error g++ is too old
        #endif
    ]])], [AC_MSG_RESULT([yes])], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([a C++20 compiler is missing; install the package g++ (12 or newer) or clang (14 or newer)])])

    CXX="$CXX -std=c++20"
    AC_MSG_CHECKING([whether $CXX has the C++20 library])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <atomic>
        #include <bit>
        #include <concepts>
        #include <span>
        template <std::unsigned_integral T> constinit T zero = 0;
    ]], [[
        std::atomic<unsigned> word = zero<unsigned>;
        word.notify_all();
        return std::popcount(word.load());
    ]])], [AC_MSG_RESULT([yes])], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([$CXX finds no C++20 standard library; install the package libstdc++-12-dev])])

    # Threads live in libc since glibc 2.34; older ones need the flag.
    AC_MSG_CHECKING([whether $CXX links threads with -pthread])
    regcache_ldflags=$LDFLAGS
    LDFLAGS="$LDFLAGS -pthread"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <pthread.h>]], [[return pthread_atfork(nullptr, nullptr, nullptr);]])],
        [AC_MSG_RESULT([yes])], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([POSIX threads are missing; install the package libc6-dev])])
    LDFLAGS=$regcache_ldflags
])
