# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command, each of which parses, calls the public API and prints."""
