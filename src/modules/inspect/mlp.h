// SPDX-License-Identifier: BSD-3-Clause
// mlp.h - a multi-layer perceptron over bytes: each layer's weights are read once for several packets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "modules/inspect/text.h"

namespace batchplane::inspect {

// A text's class, and the bits of its output, the highest one: 0 where that is no number.
struct Choice {
  uint32_t chosen = 0;
  uint32_t output_bits = 0;
};

// Read-only once built.
class Mlp {
 public:
  static constexpr uint32_t kMaxWidth = 4096;
  static constexpr uint32_t kMaxLayers = 16;

  // Layers w0, b0, w1, b1, .. of a file of numpy.savez; w has a row for each input. Throws ConfigError.
  static Mlp from_file(const std::string& path, const std::string& where);
  // Of random weights, the same each time: for load and tests.
  static Mlp random(const std::vector<uint32_t>& widths);

  [[nodiscard]] uint32_t n_inputs() const { return layers_.front().n_inputs; }
  [[nodiscard]] uint32_t n_classes() const { return layers_.back().n_outputs; }
  [[nodiscard]] uint64_t n_weights() const;
  [[nodiscard]] uint32_t n_scratch_floats() const;

  // choices[i]: the class of text i, whose first n_inputs() bytes are taken, over 255, with zeros behind
  // its end. Between layers what is negative becomes 0; the first of the highest outputs wins.
  // `scratch`: n_scratch_floats() of them.
  void classify(const Text* texts, uint32_t n, float* scratch, Choice* choices) const noexcept;

  // For a device (classify.cl): layers, the widest one, what a byte is multiplied with; each layer's inputs, outputs
  // and padded outputs; and then each layer's biases and weights.
  [[nodiscard]] std::vector<uint32_t> words() const;
  [[nodiscard]] uint32_t scratch_words() const { return 2 * widest_; }  // of a text there

 private:
  static constexpr float kByteScale = 1.0F / 255;
  static constexpr uint32_t kPackets = 4;  // that take a weight at once
  static constexpr uint32_t kStride = 16;  // outputs are padded to a multiple of it

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
  uint32_t widest_ = 0;  // padded
};

}  // namespace batchplane::inspect
