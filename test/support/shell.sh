# SPDX-License-Identifier: BSD-2-Clause
# What shell tests share. A test sources it first: . "$SOURCE_DIR/test/support/shell.sh"
# shellcheck shell=sh
set -u

: "${SOURCE_DIR:?run this test through test/run}" "${BUILD_DIR:?run this test through test/run}"

# skip REASON: ends the test; what it wanted to see can't be seen here.
skip() {
    echo "skipped: $*"
    exit 77
}

# fail REASON: ends the test.
fail() {
    echo "FAILED: $*"
    exit 1
}

# need TOOL PACKAGE: skips the test when the tool isn't installed.
need() {
    command -v "$1" >/dev/null || skip "$1 is missing; install the package $2"
}

# need_program PROGRAM WHAT: skips the test when configure didn't find what the program is built with.
need_program() {
    [ -x "$BUILD_DIR/$1" ] || skip "$1 isn't built; it needs $2"
}

# skip_under_sanitizer REASON: programs that aren't built with the sanitizer can't load what is.
skip_under_sanitizer() {
    [ -z "$SANITIZER" ] || skip "built with -fsanitize=$SANITIZER: $*"
}
