# SPDX-License-Identifier: BSD-2-Clause
# Are libibverbs' headers there? The library itself is loaded when it is needed, never linked.

AC_DEFUN([REGCACHE_VERBS], [
    AC_ARG_WITH([verbs],
        [AS_HELP_STRING([--without-verbs], [build without what asks RDMA devices for their limits])], [], [with_verbs=yes])
    AS_IF([test "$with_verbs" != no], [
        AC_CHECK_HEADER([infiniband/verbs.h], [],
            [AC_MSG_ERROR([infiniband/verbs.h is missing; install the package libibverbs-dev, or configure --without-verbs])])
        AC_DEFINE([REGCACHE_HAVE_VERBS], [1], [RDMA devices are asked for their limits.])])
])
