// SPDX-License-Identifier: BSD-3-Clause
// npz_file.h - reads arrays of numbers from files written by numpy.savez.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace batchplane::inspect {

// Row-major.
struct NpzArray {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

// Arrays by name. Throws ConfigError with the file and the error. Elements are '<f4' or '<f8';
// compressed files are refused.
[[nodiscard]] std::map<std::string, NpzArray> read_npz(const std::string& path,
                                                       const std::string& where);

}  // namespace batchplane::inspect
