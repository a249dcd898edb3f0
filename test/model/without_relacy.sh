#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Stands in for the tests of this folder that need relacy.
. "$SOURCE_DIR/test/support/shell.sh"
skip "the models of the lock-free headers: relacy wasn't found; install the package relacy-dev"
