# SPDX-License-Identifier: Apache-2.0
"""pyCANON: measures the criteria of a table; our numbers are compared with its numbers, not its speed with ours."""
