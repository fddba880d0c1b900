# SPDX-License-Identifier: BSD-3-Clause
"""An ISP's LibreQoS files as egress trees."""
