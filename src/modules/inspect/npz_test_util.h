// SPDX-License-Identifier: BSD-3-Clause
// npz_test_util.h - builds good and broken files of weights.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace batchplane {

inline void append(std::string& to, uint64_t x, uint32_t n_bytes) {
  for (uint32_t i = 0; i < n_bytes; ++i) to += static_cast<char>(i < 8 ? x >> 8 * i : 0);
}

inline std::string npy_shape(uint32_t n) { return "(" + std::to_string(n) + ",)"; }
inline std::string npy_shape(uint32_t n_rows, uint32_t n_columns) {
  return "(" + std::to_string(n_rows) + ", " + std::to_string(n_columns) + ")";
}
// In the format of numpy.savez.
inline std::string npy_of(const std::string& shape, const std::vector<float>& values,
                          const std::string& type = "<f4") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::string npy = "\x93NUMPY";
  npy += '\x01';
  npy += '\0';
  append(npy, header.size(), 2);
  npy += header;
  npy.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  return npy;
}
inline std::string npz_of(const std::vector<std::pair<std::string, std::string>>& files,
                          uint32_t method = 0) {
  std::string zip;
  std::string directory;
  for (const auto& [name, content] : files) {
    const uint64_t offset = zip.size();
    std::string facts;
    append(facts, 20, 2), append(facts, 0, 2), append(facts, method, 2), append(facts, 0, 8);
    append(facts, content.size(), 4), append(facts, content.size(), 4);
    append(facts, name.size() + 4, 2);
    append(zip, 0x04034b50, 4);
    zip += facts;
    append(zip, 4, 2), append(zip, 0, 4);  // an extra field, which the reader skips
    zip.insert(zip.size() - 4, name + ".npy");
    zip += content;
    append(directory, 0x02014b50, 4), append(directory, 20, 2);
    directory += facts;
    append(directory, 0, 2), append(directory, 0, 10), append(directory, offset, 4);
    directory += name + ".npy";
  }
  const uint64_t at = zip.size();
  zip += directory;
  append(zip, 0x06054b50, 4), append(zip, 0, 4), append(zip, files.size(), 2),
      append(zip, files.size(), 2);
  append(zip, directory.size(), 4), append(zip, at, 4), append(zip, 0, 2);
  return zip;
}

}  // namespace batchplane
