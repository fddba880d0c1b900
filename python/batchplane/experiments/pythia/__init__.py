# SPDX-License-Identifier: BSD-3-Clause
"""Applications on several devices: Pythia's figures and claims, in virtual time."""
