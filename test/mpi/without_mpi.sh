#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Stands in for the tests of this folder that need MPI.
. "$SOURCE_DIR/test/support/shell.sh"
skip "the MPI programs: no MPI compiler was found; install the package libopenmpi-dev"
