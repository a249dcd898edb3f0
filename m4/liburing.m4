# SPDX-License-Identifier: BSD-2-Clause
# Where is liburing? The tests' lower provider pins memory with it, as a network card would.

AC_DEFUN([REGCACHE_LIBURING], [
    AS_IF([test "$with_tests" != no], [
        PKG_CHECK_MODULES([LIBURING], [liburing >= 2.2], [],
            [AC_MSG_ERROR([liburing is missing; install the package liburing-dev, or configure --without-tests])])])
])
