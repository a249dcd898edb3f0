# SPDX-License-Identifier: BSD-2-Clause
# Where is libfabric, and in which folder does it look for providers?

AC_DEFUN([REGCACHE_LIBFABRIC], [
    PKG_CHECK_MODULES([LIBFABRIC], [libfabric >= 1.17], [],
        [AC_MSG_ERROR([libfabric 1.17 or newer is missing; install the package libfabric-dev, or name its pkgconfig folder in PKG_CONFIG_PATH])])
    libfabric_version=$($PKG_CONFIG --modversion libfabric)

    # Its headers aren't ours to warn about, wherever they are installed.
    LIBFABRIC_CPPFLAGS=$(AS_ECHO([" $LIBFABRIC_CFLAGS"]) | sed 's/ -I/ -isystem /g')
    AC_SUBST([LIBFABRIC_CPPFLAGS])

    AC_MSG_CHECKING([for the headers of an external provider])
    regcache_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $LIBFABRIC_CPPFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
        #include <rdma/providers/fi_log.h>
        #include <rdma/providers/fi_prov.h>
    ]])], [AC_MSG_RESULT([yes])], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([rdma/providers/fi_prov.h doesn't compile; install the package libfabric-dev])])
    CPPFLAGS=$regcache_cppflags

    AC_ARG_WITH([providerdir],
        [AS_HELP_STRING([--with-providerdir=DIR],
            [install the provider into DIR (default: the folder "libfabric" beside the libfabric that was found)])],
        [AS_CASE([$withval], [yes|no], [AC_MSG_ERROR([--with-providerdir needs a folder])])
         providerdir=$withval],
        [providerdir=$($PKG_CONFIG --variable=libdir libfabric)/libfabric])
    AC_SUBST([providerdir])
])
