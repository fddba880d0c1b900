# SPDX-License-Identifier: BSD-3-Clause
"""Applications on several devices: the figures and claims of Pythia, in virtual time."""
