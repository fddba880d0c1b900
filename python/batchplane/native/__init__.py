# SPDX-License-Identifier: BSD-3-Clause
"""The extension `_native`: simulator, controllers and planner in C++."""
