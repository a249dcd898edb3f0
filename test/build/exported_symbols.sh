#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The provider shows one symbol to the program that loads it: the function that libfabric calls.
. "$SOURCE_DIR/test/support/shell.sh"
need nm binutils

module=$BUILD_DIR/.libs/libregcache-fi.so
symbols=$(nm -D --defined-only --format=posix "$module") || fail "nm can't read $module"
names=$(echo "$symbols" | cut -d' ' -f1)
[ "$names" = fi_prov_ini ] || fail "the provider exports more or less than fi_prov_ini: $symbols"
case $symbols in
    "fi_prov_ini T "*) echo "the provider exports fi_prov_ini alone" ;;
    *) fail "fi_prov_ini is no function: $symbols" ;;
esac
