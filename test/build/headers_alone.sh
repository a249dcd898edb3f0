#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every header compiles by itself: those of prov/ as this build compiles, those of include/ as an application does, in C
# and C++ and with all warnings.
. "$SOURCE_DIR/test/support/shell.sh"
skip_under_sanitizer "headers don't change with it"

compile="$SCRATCH_DIR/compile"
cat >"$compile" <<'END'
#!/bin/sh
# compile HEADER COMMAND...
header=$1
shift
printf '#include "%s"\n' "$header" >"$SCRATCH_DIR/$$.source"
"$@" -fsyntax-only "$SCRATCH_DIR/$$.source" && exit
echo "$header doesn't compile alone: $*"
exit 1
END
chmod +x "$compile"

headers() {
    [ ! -d "$SOURCE_DIR/$1" ] || find "$SOURCE_DIR/$1" -name '*.hpp' -o -name '*.h' | sort
}
# alone FOLDER COMMAND...: the command is split into words here, as make does.
alone() {
    folder=$1
    shift
    # shellcheck disable=SC2086
    headers "$folder" | xargs -P "$(nproc)" -I '{}' "$compile" '{}' $* >>"$SCRATCH_DIR/output" 2>&1 || bad=yes
}

bad=no
strict="-Wall -Wextra -Wpedantic -Werror"
[ -n "$(headers prov)" ] || fail "there is no header in $SOURCE_DIR/prov"
alone prov "$CXX -x c++ $PROV_CPPFLAGS -Wall -Wextra -Werror"
alone include "$CXX -x c++ $LIBFABRIC_CPPFLAGS $strict"
alone include "$CC -x c -std=c99 $LIBFABRIC_CPPFLAGS $strict"
if [ "$bad" = yes ]; then
    cat "$SCRATCH_DIR/output"
    fail "see above"
fi
echo "$(headers prov | wc -l) headers of prov/ and $(headers include | wc -l) of include/ compile alone"
