# SPDX-License-Identifier: BSD-2-Clause
# Does the build check its own rules (lock ranks, closing twice, the standard library's assertions)?

AC_DEFUN([REGCACHE_ENABLE_DEBUG], [
    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug], [check lock ranks and other rules at run time, and abort where one is broken])],
        [], [enable_debug=no])
    AS_IF([test "$enable_debug" = yes], [
        AC_DEFINE([REGCACHE_DEBUG], [1], [Rules such as lock ranks are checked at run time.])
        AC_DEFINE([_GLIBCXX_ASSERTIONS], [1], [The standard library checks its preconditions.])])
])
