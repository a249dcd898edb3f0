# SPDX-License-Identifier: BSD-2-Clause
# Are hwloc's headers there? The library itself is loaded when it is needed, never linked.

AC_DEFUN([REGCACHE_HWLOC], [
    AC_ARG_WITH([hwloc],
        [AS_HELP_STRING([--without-hwloc], [build without what asks hwloc for the machine's shape])], [], [with_hwloc=yes])
    AS_IF([test "$with_hwloc" != no], [
        AC_CHECK_HEADER([hwloc.h], [],
            [AC_MSG_ERROR([hwloc.h is missing; install the package libhwloc-dev, or configure --without-hwloc])])
        AC_DEFINE([REGCACHE_HAVE_HWLOC], [1], [hwloc is asked for the machine's shape.])])
])
