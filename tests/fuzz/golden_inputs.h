// SPDX-License-Identifier: BSD-3-Clause
// golden_inputs.h - frames of golden cases as inputs in the format of frames.h.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "frames.h"
#include "mutator.h"

namespace batchplane::fuzz {

inline constexpr size_t kInputsOfCase = 2;  // its frames are taken from all over the case

// Of a capture file as tests/golden/make.py writes it: little endian, microseconds.
inline std::vector<Bytes> frames_of_capture(const std::filesystem::path& path) {
  constexpr size_t kFileHeaderBytes = 24;
  constexpr size_t kRecordHeaderBytes = 16;
  std::ifstream file(path, std::ios::binary);
  const Bytes all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<Bytes> frames;
  for (size_t at = kFileHeaderBytes; at + kRecordHeaderBytes <= all.size();) {
    const uint8_t* length = &all[at + 8];
    const size_t n_bytes = length[0] | length[1] << 8 | length[2] << 16;
    at += kRecordHeaderBytes;
    if (n_bytes > all.size() - at) fail("a capture that ends early: " + path.string());
    frames.emplace_back(all.begin() + static_cast<ptrdiff_t>(at),
                        all.begin() + static_cast<ptrdiff_t>(at + n_bytes));
    at += n_bytes;
  }
  return frames;
}

inline Bytes input_of(const std::vector<Bytes>& frames, size_t first, size_t step) {
  // A time step of 2^20 ns; the network header at 14; no next hop.
  Bytes input{20, 1, 0, 0};
  for (size_t n = 0, i = first; n < kMaxFrames && i < frames.size(); ++n, i += step) {
    const size_t n_bytes = std::min<size_t>(frames[i].size(), kMostFrameBytes);
    input.push_back(static_cast<uint8_t>(n_bytes >> 8));
    input.push_back(static_cast<uint8_t>(n_bytes));
    input.insert(input.end(), frames[i].begin(),
                 frames[i].begin() + static_cast<ptrdiff_t>(n_bytes));
  }
  return input;
}

// Of each folder below `modules` that holds a golden case.
inline std::vector<Bytes> golden_inputs(const std::filesystem::path& modules) {
  std::vector<std::filesystem::path> captures;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(modules)) {
    if (entry.path().filename() == "in.pcap") captures.push_back(entry.path());
  }
  std::ranges::sort(captures);
  std::vector<Bytes> inputs;
  for (const auto& capture : captures) {
    const std::vector<Bytes> frames = frames_of_capture(capture);
    const size_t step = std::max<size_t>(frames.size() / (kInputsOfCase * kMaxFrames), 1);
    for (size_t i = 0; i < kInputsOfCase; ++i) {
      inputs.push_back(input_of(frames, i * kMaxFrames * step, step));
    }
  }
  return inputs;
}

}  // namespace batchplane::fuzz
