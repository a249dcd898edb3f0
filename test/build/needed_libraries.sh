#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The provider brings no library into a program but libfabric and libc's own: what is heavy is loaded when it is needed.
. "$SOURCE_DIR/test/support/shell.sh"
need readelf binutils

module=$BUILD_DIR/.libs/libregcache-fi.so
needed=$(readelf -d "$module" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
case $needed in
    *libfabric.so.*) ;;
    *) fail "the provider doesn't need libfabric, but: $needed" ;;
esac
for library in $needed; do
    case $library in
        libfabric.so.* | libc.so.* | libm.so.* | ld-linux*.so.*) ;;
        libasan.so.* | libubsan.so.* | libtsan.so.* | libstdc++.so.* | libgcc_s.so.*)
            [ -n "$SANITIZER" ] || fail "the provider needs $library" ;;
        *) fail "the provider needs $library" ;;
    esac
done
echo "the provider needs $(echo "$needed" | xargs)"
