# SPDX-License-Identifier: BSD-2-Clause
# Can the event program of the kernel be built? libbpf is loaded when it is needed, never linked: only its headers count.

AC_DEFUN([REGCACHE_EBPF], [
    AC_ARG_WITH([ebpf],
        [AS_HELP_STRING([--without-ebpf], [build without the event source ebpf and its service regcached])], [], [with_ebpf=yes])
    AS_IF([test "$with_ebpf" != no], [
        AC_CHECK_HEADER([bpf/libbpf.h], [],
            [AC_MSG_ERROR([bpf/libbpf.h is missing; install the package libbpf-dev, or configure --without-ebpf])])
        AC_PATH_PROGS([BPF_CLANG], [clang clang-19 clang-16 clang-14])
        AS_IF([test -z "$BPF_CLANG"],
            [AC_MSG_ERROR([clang is missing, which compiles for the kernel; install the package clang, or configure --without-ebpf])])
        AC_PATH_PROG([BPFTOOL], [bpftool], [], [$PATH:/usr/sbin:/sbin])
        AS_IF([test -z "$BPFTOOL"],
            [AC_MSG_ERROR([bpftool is missing; install the package bpftool, or configure --without-ebpf])])
        # Where <asm/types.h> is: clang doesn't look there when it compiles for the kernel.
        BPF_CPPFLAGS="-idirafter /usr/include/$($CC -print-multiarch 2>/dev/null)"
        AC_SUBST([BPF_CPPFLAGS])
        AC_DEFINE([REGCACHE_HAVE_EBPF], [1], [The event source ebpf is built.])])
    AC_ARG_WITH([systemdsystemunitdir],
        [AS_HELP_STRING([--with-systemdsystemunitdir=DIR], [install the units of regcached there (default: don't)])],
        [], [with_systemdsystemunitdir=no])
    AC_SUBST([systemdsystemunitdir], [$with_systemdsystemunitdir])
    AM_CONDITIONAL([SYSTEMD], [test "$with_systemdsystemunitdir" != no])
    AM_CONDITIONAL([EBPF], [test "$with_ebpf" != no])
])
