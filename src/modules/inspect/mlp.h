// SPDX-License-Identifier: BSD-3-Clause
// mlp.h - a multi-layer perceptron on bytes; each layer's weights are loaded once for several
// packets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "modules/inspect/text.h"

namespace batchplane::inspect {

// The class of a text, and the bits of its (highest) output, or 0 if that is NaN.
struct Choice {
  uint32_t chosen = 0;
  uint32_t output_bits = 0;
};

// Read-only once built.
class Mlp {
 public:
  static constexpr uint32_t kMaxWidth = 4096;
  static constexpr uint32_t kMaxLayers = 16;

  // Reads layers w0, b0, w1, b1, ... from a file written by numpy.savez; w has a row for each
  // input. Throws ConfigError.
  static Mlp from_file(const std::string& path, const std::string& where);
  // Random weights, the same each time, for benchmarks and tests.
  static Mlp random(const std::vector<uint32_t>& widths);

  [[nodiscard]] uint32_t n_inputs() const { return layers_.front().n_inputs; }
  [[nodiscard]] uint32_t n_classes() const { return layers_.back().n_outputs; }
  [[nodiscard]] uint64_t n_weights() const;
  [[nodiscard]] uint32_t n_scratch_floats() const;

  // choices[i]: the class of text i. The inputs are its first n_inputs() bytes divided by 255,
  // padded with zeros. ReLU between layers; of equal highest outputs the first wins. `scratch` has
  // n_scratch_floats() elements.
  void classify(const Text* texts, uint32_t n, float* scratch, Choice* choices) const noexcept;

  // For a device (classify.cl): the number of layers, the scale factor for bytes and a quarter of
  // the widest layer's values; for each layer its inputs, outputs and padded outputs; nothing up to
  // the next multiple of 16 bytes; then each layer's biases and weights.
  [[nodiscard]] std::vector<uint32_t> words() const;

 private:
  static constexpr float kByteScale = 1.0F / 255;
  static constexpr uint32_t kPackets = 4;  // packets that share one load of a weight
  static constexpr uint32_t kStride = 16;  // outputs are padded to a multiple of this

  struct Layer {
    uint32_t n_inputs = 0;
    uint32_t n_outputs = 0;
    uint32_t n_padded = 0;
    std::vector<float> weights;  // n_padded for each input
    std::vector<float> biases;
  };

  void add_layer(uint32_t n_inputs, uint32_t n_outputs, const float* weights, const float* biases);
  template <uint32_t kMany>
  static void run(const Layer& layer, const float* in, uint32_t in_stride, float* out,
                  bool is_last);

  std::vector<Layer> layers_;
  uint32_t widest_ = 0;  // including padding
};

}  // namespace batchplane::inspect
