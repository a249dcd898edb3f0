# SPDX-License-Identifier: BSD-2-Clause
# Is relacy there, which the model programs run the lock-free headers with? Optional, for tests only.

AC_DEFUN([REGCACHE_RELACY], [
    have_relacy=no
    AS_IF([test "$with_tests" != no],
        [AC_MSG_CHECKING([for relacy])
        AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
            #if !__has_include(<relacy/relacy_std.hpp>)
            #error relacy is missing
            #endif
        ]])], [have_relacy=yes])
        AC_MSG_RESULT([$have_relacy])])
    AM_CONDITIONAL([HAVE_RELACY], [test "$have_relacy" = yes])
])
