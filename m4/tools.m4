# SPDX-License-Identifier: BSD-2-Clause
# Which optional programs are there: spin (model checker) and gcovr (coverage report)?

AC_DEFUN([REGCACHE_TOOLS], [
    AC_CHECK_PROG([have_spin], [spin], [yes], [no])
    AC_CHECK_PROG([have_gcovr], [gcovr], [yes], [no])
    AM_CONDITIONAL([HAVE_SPIN], [test "$have_spin" = yes])
    AM_CONDITIONAL([HAVE_GCOVR], [test "$have_gcovr" = yes])
])
