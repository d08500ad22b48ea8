# SPDX-License-Identifier: Apache-2.0
"""The studio: a page on this machine where people who do not program protect a table.

It edits a `Policy` and calls the functions behind the commands, and nothing else. ``application`` has the addresses,
``security`` guards them, ``project`` keeps policies and what was measured, ``jobs`` starts child processes, in which
``child`` works with the table: the server itself never holds a record. ``screens`` says what a page shows, ``charts``
draws, ``texts`` words and formats. All of it needs the extra ``studio``.
"""
