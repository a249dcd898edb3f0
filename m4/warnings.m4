# SPDX-License-Identifier: BSD-2-Clause
# Which warnings does the compiler know of those that we want, and are they errors?

AC_DEFUN([REGCACHE_WARNINGS], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [a warning stops the build])], [], [enable_werror=no])

    # clang takes an unknown warning for a warning, so these tests compile with -Werror.
    WARN_CXXFLAGS=
    regcache_cxxflags=$CXXFLAGS
    for flag in -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wmissing-field-initializers \
        -Wformat=2 -Wundef -Wvla -Wcast-align -Wextra-semi -Wredundant-decls -Wimplicit-fallthrough \
        -Wduplicated-cond -Wduplicated-branches -Wlogical-op \
        -Wthread-safety -Wthread-safety-beta
    do
        AC_MSG_CHECKING([whether $CXX knows $flag])
        CXXFLAGS="$regcache_cxxflags -Werror $flag"
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int main() { return 0; }]])],
            [AC_MSG_RESULT([yes]); WARN_CXXFLAGS="$WARN_CXXFLAGS $flag"], [AC_MSG_RESULT([no])])
    done
    CXXFLAGS=$regcache_cxxflags
    AS_IF([test "$enable_werror" = yes], [WARN_CXXFLAGS="$WARN_CXXFLAGS -Werror"])
    AC_SUBST([WARN_CXXFLAGS])
])
