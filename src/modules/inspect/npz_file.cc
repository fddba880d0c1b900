// SPDX-License-Identifier: BSD-3-Clause
// npz_file.cc - reads the central directory of a zip archive and the .npy files in it.
#include "modules/inspect/npz_file.h"

#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/text_file.h"

namespace batchplane::inspect {
namespace {

constexpr uint64_t kMaxFileBytes = 256 << 20;
constexpr uint64_t kMaxDimension = 1 << 20;
constexpr const char* kRemedy = "write it with numpy.savez(FILE, w0=.., b0=.., ..)";

// Little-endian numbers at offsets in the file; bounds are checked.
class Bytes {
 public:
  Bytes(std::string bytes, std::string path, std::string where)
      : bytes_(std::move(bytes)), path_(std::move(path)), where_(std::move(where)) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError("'" + path_ + "': " + what, where_, kRemedy);
  }
  [[nodiscard]] uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] uint64_t number(uint64_t at, uint32_t n_bytes) const {
    const std::string part = text(at, n_bytes);
    uint64_t x = 0;
    for (uint32_t i = 0; i < n_bytes; ++i) x |= uint64_t{static_cast<uint8_t>(part[i])} << 8 * i;
    return x;
  }
  [[nodiscard]] std::string text(uint64_t at, uint64_t n_bytes) const {
    if (n_bytes > bytes_.size() || at > bytes_.size() - n_bytes) refuse("the file is cut off");
    return bytes_.substr(at, n_bytes);
  }

 private:
  std::string bytes_;
  std::string path_;
  std::string where_;
};

// Signatures and field offsets of the zip format.
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kEndBytes = 22;
constexpr uint32_t kEntryBytes = 46;
constexpr uint32_t kLocalBytes = 30;

uint64_t find_end(const Bytes& file) {
  constexpr uint64_t kMaxCommentBytes = 0xffff;
  for (uint64_t back = kEndBytes; back <= file.size() && back <= kEndBytes + kMaxCommentBytes;
       ++back) {
    const uint64_t at = file.size() - back;
    if (file.number(at, 4) == kEndSignature) return at;
  }
  file.refuse("this is no .npz file");
}

// The value of 'key': up to a comma or closing brace that is not inside parentheses.
std::string field_of(const std::string& header, const std::string& key) {
  size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) return "";
  at = header.find_first_not_of(' ', at + key.size() + 3);
  if (at == std::string::npos) return "";
  const size_t end = header[at] == '(' ? header.find(')', at) : header.find_first_of(",}", at);
  return header.substr(at, end == std::string::npos ? end : end - at);
}

std::optional<std::vector<uint64_t>> shape_of(const std::string& text) {
  std::vector<uint64_t> shape;
  uint64_t number = 0;
  bool is_number = false;
  for (const char c : text + ",") {
    if (c >= '0' && c <= '9') {
      number = number * 10 + static_cast<uint64_t>(c - '0');
      is_number = true;
      if (number > kMaxDimension) return std::nullopt;
    } else if (is_number) {
      shape.push_back(number);
      number = 0;
      is_number = false;
    }
  }
  return shape;
}

NpzArray parse_npy(const Bytes& file, uint64_t at, uint64_t n_bytes, const std::string& name) {
  if (file.text(at, 6) != "\x93NUMPY") file.refuse("'" + name + "' is no array");
  const bool is_first_version = file.number(at + 6, 1) == 1;
  const uint32_t length_bytes = is_first_version ? 2 : 4;
  const uint64_t header_bytes = file.number(at + 8, length_bytes);
  const std::string header = file.text(at + 8 + length_bytes, header_bytes);
  const uint64_t data_at = 8 + length_bytes + header_bytes;
  const std::string type = field_of(header, "descr");
  const uint32_t value_bytes = type == "'<f4'" ? 4 : 8;
  if (type != "'<f4'" && type != "'<f8'") {
    file.refuse("'" + name + "' is of type " + type + ", not of float32 or float64");
  }
  if (field_of(header, "fortran_order") != "False") {
    file.refuse("'" + name + "' lies column by column: save numpy.ascontiguousarray of it");
  }
  const auto shape = shape_of(field_of(header, "shape"));
  if (!shape || shape->empty() || shape->size() > 2) {
    file.refuse("'" + name + "' is neither a vector nor a matrix");
  }
  NpzArray array{*shape, {}};
  uint64_t n = 1;
  for (const uint64_t length : *shape) n *= length;
  if (data_at > n_bytes || n > (n_bytes - data_at) / value_bytes) {
    file.refuse("'" + name + "' is cut off");
  }
  const std::string data = file.text(at + data_at, n * value_bytes);
  array.values.resize(n);
  for (uint64_t i = 0; i < n; ++i) {
    double wide = 0;
    float narrow = 0;
    if (value_bytes == 4) std::memcpy(&narrow, &data[i * 4], 4);
    if (value_bytes == 8) std::memcpy(&wide, &data[i * 8], 8);
    array.values[i] = value_bytes == 4 ? narrow : static_cast<float>(wide);
    if (!std::isfinite(array.values[i]))
      file.refuse("'" + name + "' has a value that is no number");
  }
  return array;
}

}  // namespace

std::map<std::string, NpzArray> read_npz(const std::string& path, const std::string& where) {
  std::ifstream in = open_text_file(path, where);
  std::string content;
  std::error_code error;
  if (std::filesystem::file_size(path, error) <= kMaxFileBytes) {
    content.assign(std::istreambuf_iterator<char>(in), {});
  }
  const Bytes file(std::move(content), path, where);
  const uint64_t end = find_end(file);
  const uint64_t n_entries = file.number(end + 10, 2);
  uint64_t at = file.number(end + 16, 4);
  std::map<std::string, NpzArray> arrays;
  for (uint64_t i = 0; i < n_entries; ++i) {
    if (file.number(at, 4) != kEntrySignature) file.refuse("its directory is broken");
    const uint64_t name_bytes = file.number(at + 28, 2);
    std::string name = file.text(at + kEntryBytes, name_bytes);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (file.number(at + 10, 2) != 0) {
      file.refuse("'" + name + "' is compressed: write it with numpy.savez");
    }
    const uint64_t n_bytes = file.number(at + 24, 4);
    const uint64_t local = file.number(at + 42, 4);
    const uint64_t data =
        local + kLocalBytes + file.number(local + 26, 2) + file.number(local + 28, 2);
    arrays[name] = parse_npy(file, data, n_bytes, name);
    at += kEntryBytes + name_bytes + file.number(at + 30, 2) + file.number(at + 32, 2);
  }
  return arrays;
}

}  // namespace batchplane::inspect
