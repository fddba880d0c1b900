// SPDX-License-Identifier: BSD-3-Clause
// mlp.cc - loads the layers and evaluates the network.
#include "modules/inspect/mlp.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "modules/inspect/npz_file.h"

namespace batchplane::inspect {
namespace {

constexpr uint32_t kVector = 8;        // floats in a register
constexpr uint32_t kDeviceVector = 4;  // floats that a device loads at once

std::string array_name(char kind, uint32_t layer) {
  std::string name(1, kind);
  name += std::to_string(layer);
  return name;
}

std::string shape_text(const NpzArray& array) {
  std::string text;
  for (const uint64_t length : array.shape) {
    text += (text.empty() ? "" : " x ") + std::to_string(length);
  }
  return text;
}

}  // namespace

void Mlp::add_layer(uint32_t n_inputs, uint32_t n_outputs, const float* weights,
                    const float* biases) {
  Layer layer{.n_inputs = n_inputs, .n_outputs = n_outputs};
  layer.n_padded = (n_outputs + kStride - 1) / kStride * kStride;
  layer.weights.assign(size_t{n_inputs} * layer.n_padded, 0);
  layer.biases.assign(layer.n_padded, 0);
  for (uint32_t i = 0; i < n_inputs; ++i) {
    std::copy_n(weights + size_t{i} * n_outputs, n_outputs,
                layer.weights.begin() + static_cast<ptrdiff_t>(size_t{i} * layer.n_padded));
  }
  std::copy_n(biases, n_outputs, layer.biases.begin());
  widest_ = std::max({widest_, layer.n_padded, n_inputs});
  layers_.push_back(std::move(layer));
}

Mlp Mlp::from_file(const std::string& path, const std::string& where) {
  const auto arrays = read_npz(path, where);
  const auto refuse = [&](const std::string& what) {
    throw ConfigError("'" + path + "': " + what, where,
                      "layer i needs a matrix w<i>, a row for each input, and a vector b<i>");
  };
  Mlp mlp;
  for (uint32_t i = 0; arrays.contains(array_name('w', i)); ++i) {
    const std::string w_name = array_name('w', i);
    const std::string b_name = array_name('b', i);
    const NpzArray& w = arrays.at(w_name);
    const auto b = arrays.find(b_name);
    if (i == kMaxLayers) refuse("there are more than " + std::to_string(kMaxLayers) + " layers");
    if (w.shape.size() != 2) refuse(w_name + " is no matrix");
    if (b == arrays.end()) refuse(b_name + " is missing");
    if (w.shape[0] == 0 || w.shape[1] == 0 || std::max(w.shape[0], w.shape[1]) > kMaxWidth) {
      refuse(w_name + " is " + shape_text(w) + ": each side is from 1 to " +
             std::to_string(kMaxWidth));
    }
    if (b->second.shape.size() != 1 || b->second.shape[0] != w.shape[1]) {
      refuse(b_name + " is " + shape_text(b->second) + " beside a " + w_name + " of " +
             shape_text(w));
    }
    if (i != 0 && w.shape[0] != mlp.layers_.back().n_outputs) {
      refuse(w_name + " is " + shape_text(w) + " behind " +
             std::to_string(mlp.layers_.back().n_outputs) + " outputs");
    }
    mlp.add_layer(static_cast<uint32_t>(w.shape[0]), static_cast<uint32_t>(w.shape[1]),
                  w.values.data(), b->second.values.data());
  }
  if (mlp.layers_.empty()) refuse("w0 is missing");
  return mlp;
}

Mlp Mlp::random(const std::vector<uint32_t>& widths) {
  Rng rng(17);
  Mlp mlp;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    std::vector<float> weights(size_t{widths[i]} * widths[i + 1]);
    const double reach = 2 / std::sqrt(widths[i]);
    for (float& weight : weights) weight = static_cast<float>((rng.uniform() - 0.5) * 2 * reach);
    mlp.add_layer(widths[i], widths[i + 1], weights.data(),
                  std::vector<float>(widths[i + 1], 0.01F).data());
  }
  return mlp;
}

uint64_t Mlp::n_weights() const {
  uint64_t n = 0;
  for (const Layer& layer : layers_) n += uint64_t{layer.n_inputs + 1} * layer.n_outputs;
  return n;
}

uint32_t Mlp::n_scratch_floats() const { return 2 * kPackets * widest_; }

std::vector<uint32_t> Mlp::words() const {
  std::vector<uint32_t> words{static_cast<uint32_t>(layers_.size()),
                              std::bit_cast<uint32_t>(kByteScale),
                              (widest_ + kDeviceVector - 1) / kDeviceVector};
  for (const Layer& layer : layers_)
    words.insert(words.end(), {layer.n_inputs, layer.n_outputs, layer.n_padded});
  words.resize((words.size() + kDeviceVector - 1) / kDeviceVector * kDeviceVector);
  for (const Layer& layer : layers_) {
    for (const float bias : layer.biases) words.push_back(std::bit_cast<uint32_t>(bias));
    for (const float weight : layer.weights) words.push_back(std::bit_cast<uint32_t>(weight));
  }
  return words;
}

// Computes layer outputs for kMany packets, two registers of outputs at a time.
template <uint32_t kMany>
void Mlp::run(const Layer& layer, const float* in, uint32_t stride, float* out, bool is_last) {
  const __m256 zero = _mm256_setzero_ps();
  for (uint32_t o = 0; o < layer.n_padded; o += kStride) {
    __m256 sums[kMany][2];
    for (uint32_t p = 0; p < kMany; ++p) {
      for (uint32_t v = 0; v < 2; ++v) sums[p][v] = _mm256_loadu_ps(&layer.biases[o + v * kVector]);
    }
    const float* row = layer.weights.data() + o;
    for (uint32_t i = 0; i < layer.n_inputs; ++i, row += layer.n_padded) {
      const __m256 first = _mm256_loadu_ps(row);
      const __m256 second = _mm256_loadu_ps(row + kVector);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kMany; ++p) {
        const __m256 x = _mm256_broadcast_ss(in + size_t{p} * stride + i);
        sums[p][0] = _mm256_fmadd_ps(first, x, sums[p][0]);
        sums[p][1] = _mm256_fmadd_ps(second, x, sums[p][1]);
      }
    }
    for (uint32_t p = 0; p < kMany; ++p) {
      for (uint32_t v = 0; v < 2; ++v) {
        const __m256 sum = is_last ? sums[p][v] : _mm256_max_ps(sums[p][v], zero);
        _mm256_storeu_ps(out + size_t{p} * stride + o + v * kVector, sum);
      }
    }
  }
}

void Mlp::classify(const Text* texts, uint32_t n, float* scratch, Choice* choices) const noexcept {
  float* const halves[2] = {scratch, scratch + size_t{kPackets} * widest_};
  for (uint32_t at = 0; at < n; at += kPackets) {
    const uint32_t n_now = std::min(n - at, kPackets);
    for (uint32_t p = 0; p < n_now; ++p) {
      float* const in = halves[0] + size_t{p} * widest_;
      const Text& text = texts[at + p];
      const uint32_t n_bytes = std::min(text.len_bytes, n_inputs());
      for (uint32_t i = 0; i < n_bytes; ++i) in[i] = static_cast<float>(text.data[i]) * kByteScale;
      std::fill(in + n_bytes, in + n_inputs(), 0.0F);
    }
    for (size_t l = 0; l < layers_.size(); ++l) {
      const bool is_last = l + 1 == layers_.size();
      float* const in = halves[l % 2];
      float* const out = halves[1 - l % 2];
      // Two or three packets take as long as four; the unused rows hold stale values.
      if (n_now == 1) {
        run<1>(layers_[l], in, widest_, out, is_last);
      } else {
        run<kPackets>(layers_[l], in, widest_, out, is_last);
      }
    }
    for (uint32_t p = 0; p < n_now; ++p) {
      const float* const out = halves[layers_.size() % 2] + size_t{p} * widest_;
      const float* const highest = std::max_element(out, out + n_classes());
      choices[at + p] = {static_cast<uint32_t>(highest - out),
                         std::isnan(*highest) ? 0 : std::bit_cast<uint32_t>(*highest)};
    }
  }
}

}  // namespace batchplane::inspect
