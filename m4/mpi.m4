# SPDX-License-Identifier: BSD-2-Clause
# Is there an MPI, and how is a program compiled for it? Optional, for tests only.

AC_DEFUN([REGCACHE_MPI], [
    have_mpi=no
    AC_ARG_VAR([MPICXX], [MPI's C++ compiler wrapper])
    AS_IF([test "$with_tests" != no], [AC_CHECK_PROGS([MPICXX], [mpicxx mpic++])])
    AS_IF([test -n "$MPICXX"], [
        # Open MPI and MPICH answer to different questions.
        MPI_CPPFLAGS=$($MPICXX --showme:compile 2>/dev/null || $MPICXX -compile_info 2>/dev/null | cut -d' ' -f2-)
        MPI_LIBS=$($MPICXX --showme:link 2>/dev/null || $MPICXX -link_info 2>/dev/null | cut -d' ' -f2-)
        MPI_CPPFLAGS=$(AS_ECHO([" $MPI_CPPFLAGS"]) | sed 's/ -I/ -isystem /g')
        AC_MSG_CHECKING([whether an MPI program links])
        regcache_cppflags=$CPPFLAGS regcache_libs=$LIBS
        CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS" LIBS="$MPI_LIBS $LIBS"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[
            #define OMPI_SKIP_MPICXX 1
            #define MPICH_SKIP_MPICXX 1
            #include <mpi.h>
        ]], [[MPI_Init(nullptr, nullptr); MPI_Finalize();]])], [have_mpi=yes])
        CPPFLAGS=$regcache_cppflags LIBS=$regcache_libs
        AC_MSG_RESULT([$have_mpi])])
    AC_SUBST([MPI_CPPFLAGS])
    AC_SUBST([MPI_LIBS])
    AM_CONDITIONAL([HAVE_MPI], [test "$have_mpi" = yes])
])
