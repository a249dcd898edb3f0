# SPDX-License-Identifier: BSD-2-Clause
# How is the C++ library linked into the provider? Into the file itself, so that the provider runs in any program,
# whatever C++ library that program brings.

AC_DEFUN([REGCACHE_STATIC_STDCXX], [
    AS_IF([test -n "$SANITIZER"], [
        # A sanitizer wraps operator new and throw of the shared library only, and its own symbols come with the program.
        STDCXX_LDFLAGS=-Wl,-lstdc++
    ], [
        # libtool's C++ mode links with -nostdlib and adds the shared libstdc++ by itself, so the provider is linked in
        # C mode and names the static one. It comes last, after the objects that need it.
        STDCXX_LDFLAGS='-static-libgcc -Wl,-Bstatic,-lstdc++,-Bdynamic -Wl,-z,defs'
        AC_MSG_CHECKING([whether a shared library links with a static libstdc++])
        regcache_ldflags=$LDFLAGS
        LDFLAGS="$LDFLAGS -shared -fPIC -static-libgcc -static-libstdc++"
        AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <string>
            std::string f(int i) { return std::to_string(i); }]])], [AC_MSG_RESULT([yes])], [
            AC_MSG_RESULT([no])
            AC_MSG_ERROR([libstdc++.a is missing; install the package libstdc++-12-dev])])
        LDFLAGS=$regcache_ldflags
    ])
    AC_SUBST([STDCXX_LDFLAGS])
])
