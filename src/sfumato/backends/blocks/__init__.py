# SPDX-License-Identifier: Apache-2.0
"""Tables that are read block by block: counting values, codes in a private file, records in another order."""
