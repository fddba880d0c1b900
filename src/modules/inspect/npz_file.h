// SPDX-License-Identifier: BSD-3-Clause
// npz_file.h - arrays of numbers from files that numpy.savez wrote.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace batchplane::inspect {

// Row by row.
struct NpzArray {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

// By name. Throws ConfigError, with the file and what is wrong with it. Arrays are of '<f4' or '<f8';
// compressed ones are refused.
[[nodiscard]] std::map<std::string, NpzArray> read_npz(const std::string& path,
                                                       const std::string& where);

}  // namespace batchplane::inspect
