// SPDX-License-Identifier: BSD-3-Clause
// classify.cl - the multi-layer perceptron of mlp.h: a text a work item. Sums begin with the bias and take one
// fused product after the other in the order of inputs, as mlp.cc does, so that all bits are the same wherever
// numbers below 2^-126 are not made zero. A result is the class, and the bits of its output.

#pragma OPENCL FP_CONTRACT OFF

#define HEAD_WORDS 3
#define LAYER_WORDS 3
#define STRIDE 16  // outputs are padded to a multiple of it

// Outputs `o` and 15 more. Values of one work item lie `lanes` apart.
inline float16 sums_of(__global const float* biases, uint n_inputs, uint n_padded, uint o,
                       __global const float* in, uint lanes) {
  __global const float* row = biases + n_padded + o;
  float16 sums = vload16(0, biases + o);
  // Four inputs at a time: on a GPU their weights come from afar, and are waited for together.
  uint i = 0;
  for (; i + 4 <= n_inputs; i += 4, row += 4 * n_padded) {
    const float16 first = vload16(0, row), second = vload16(0, row + n_padded);
    const float16 third = vload16(0, row + 2 * n_padded), fourth = vload16(0, row + 3 * n_padded);
    sums = fma(first, (float16)(in[i * lanes]), sums);
    sums = fma(second, (float16)(in[(i + 1) * lanes]), sums);
    sums = fma(third, (float16)(in[(i + 2) * lanes]), sums);
    sums = fma(fourth, (float16)(in[(i + 3) * lanes]), sums);
  }
  for (; i < n_inputs; ++i, row += n_padded)
    sums = fma(vload16(0, row), (float16)(in[i * lanes]), sums);
  return sums;
}

__kernel void classify(__global const uint* bytes, __global const uint2* places, uint n,
                       __global uint* results, __global const uint* table,
                       __global uint* scratch) {
  const uint item = get_global_id(0);
  if (item >= n) return;
  const uint n_layers = table[0], widest = table[1];
  const float scale = as_float(table[2]);
  const uint lanes = get_local_size(0);
  __global float* in =
      (__global float*)scratch + get_group_id(0) * (ulong)(2 * widest * lanes) + get_local_id(0);
  __global float* out = in + widest * lanes;

  __global const uint* layer = table + HEAD_WORDS;
  __global const uchar* text = (__global const uchar*)bytes + places[item].x;
  const uint n_bytes = places[item].y;
  for (uint i = 0; i < layer[0]; ++i)
    in[i * lanes] = i < n_bytes ? convert_float(text[i]) * scale : 0;

  __global const float* biases = (__global const float*)(layer + LAYER_WORDS * n_layers);
  float best = 0;
  uint best_at = 0;
  for (uint l = 0; l < n_layers; ++l, layer += LAYER_WORDS) {
    const uint n_inputs = layer[0], n_outputs = layer[1], n_padded = layer[2];
    for (uint o = 0; o < n_padded; o += STRIDE) {
      const float16 sums = sums_of(biases, n_inputs, n_padded, o, in, lanes);
      float sum[STRIDE];
      vstore16(sums, 0, sum);
      for (uint k = 0; k < STRIDE && o + k < n_outputs; ++k) {
        if (l + 1 != n_layers) {
          out[(o + k) * lanes] = sum[k] > 0 ? sum[k] : 0;
        } else if (o + k == 0 || best < sum[k]) {
          best = sum[k], best_at = o + k;
        }
      }
    }
    biases += (n_inputs + 1) * n_padded;
    __global float* const used = in;
    in = out, out = used;
  }
  results[2 * item] = best_at;
  results[2 * item + 1] = isnan(best) ? 0 : as_uint(best);
}
