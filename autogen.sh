#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Writes configure and the Makefile.in from the files in git. Doesn't configure.
set -eu
cd "$(dirname "$0")"
for tool in autoconf automake libtoolize pkg-config; do
    command -v "$tool" >/dev/null && continue
    echo "autogen.sh: $tool is missing; install the packages autoconf, automake, libtool and pkgconf" >&2
    exit 1
done
exec autoreconf --install --force --warnings=all
