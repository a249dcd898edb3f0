#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The parameters that the provider defines are those that its manual page explains, and every one that is defined is read.
. "$SOURCE_DIR/test/support/shell.sh"
need fi_info libfabric-bin
skip_under_sanitizer "fi_info can't load it"
cd "$SCRATCH_DIR" || exit 99

FI_PROVIDER=regcache fi_info -e 2>errors | grep -a -o 'FI_REGCACHE_[A-Z_]*' | sort -u >defined
sed -n '/^\.SH RUNTIME PARAMETERS/,/^\.SH EVENT/p' "$SOURCE_DIR/man/fi_regcache.7" >section
sed -n 's/^\.B \(FI_REGCACHE_[A-Z_]*\)$/\1/p' section | sort -u >explained
[ -s defined ] || { cat errors; fail "fi_info -e shows none"; }
[ -s explained ] || fail "the manual page explains none"
cmp defined explained || { diff defined explained; fail "fi_info -e (<) and the manual page (>) differ"; }

# What the README and the manual page name anywhere is defined.
grep -a -h -o 'FI_REGCACHE_[A-Z_]*' "$SOURCE_DIR/man/fi_regcache.7" "$SOURCE_DIR/README.md" | sort -u >named
comm -13 defined named >unknown
[ ! -s unknown ] || { cat unknown; fail "named, but not defined"; }
echo "passed: $(wc -l <defined) parameters"
