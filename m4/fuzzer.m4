# SPDX-License-Identifier: BSD-2-Clause
# Does the compiler bring libFuzzer (clang does)? Optional, for tests only.

AC_DEFUN([REGCACHE_FUZZER], [
    have_fuzzer=no
    AS_IF([test "$with_tests" != no], [
        AC_MSG_CHECKING([whether $CXX links with -fsanitize=fuzzer])
        regcache_cxxflags=$CXXFLAGS
        CXXFLAGS="$CXXFLAGS -fsanitize=fuzzer"
        AC_LINK_IFELSE([AC_LANG_SOURCE([[
            #include <cstddef>
            extern "C" int LLVMFuzzerTestOneInput(const unsigned char *, std::size_t) { return 0; }
        ]])], [have_fuzzer=yes])
        CXXFLAGS=$regcache_cxxflags
        AC_MSG_RESULT([$have_fuzzer])])
    AM_CONDITIONAL([HAVE_FUZZER], [test "$have_fuzzer" = yes])
])
