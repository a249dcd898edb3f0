# SPDX-License-Identifier: BSD-2-Clause
# Where is Criterion, which the unit, contract and provider tests are written with?

AC_DEFUN([REGCACHE_CRITERION], [
    AS_IF([test "$with_tests" != no], [
        PKG_CHECK_MODULES([CRITERION], [criterion >= 2.4], [],
            [AC_MSG_ERROR([Criterion is missing; install the package libcriterion-dev, or configure --without-tests])])])
])
