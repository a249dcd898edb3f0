# SPDX-License-Identifier: BSD-2-Clause
# Which sanitizers is everything built with, and does this compiler have them?

AC_DEFUN([REGCACHE_SANITIZER], [
    AC_ARG_ENABLE([sanitizer],
        [AS_HELP_STRING([--enable-sanitizer=LIST], [build with -fsanitize=LIST: "address,undefined" or "thread"])],
        [], [enable_sanitizer=no])
    SANITIZER_FLAGS=
    SANITIZER=
    AS_CASE([$enable_sanitizer],
        [no], [],
        [yes], [AC_MSG_ERROR([--enable-sanitizer needs a list, for example --enable-sanitizer=address,undefined])],
        [
            SANITIZER=$enable_sanitizer
            SANITIZER_FLAGS="-fsanitize=$SANITIZER -fno-sanitize-recover=all -fno-omit-frame-pointer"
            AC_MSG_CHECKING([whether $CXX links with -fsanitize=$SANITIZER])
            regcache_cxxflags=$CXXFLAGS
            CXXFLAGS="$CXXFLAGS $SANITIZER_FLAGS"
            AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])], [
                AC_MSG_RESULT([no])
                AC_MSG_ERROR([$CXX can't link with -fsanitize=$SANITIZER; install the package libgcc-12-dev or libclang-rt-dev])])
            CXXFLAGS=$regcache_cxxflags
        ])
    AM_CONDITIONAL([THREAD_SANITIZER], [AS_CASE([$SANITIZER], [*thread*], [:], [false])])
    AC_SUBST([SANITIZER])
    AC_SUBST([SANITIZER_FLAGS])
])
