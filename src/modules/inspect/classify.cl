// SPDX-License-Identifier: BSD-3-Clause
// classify.cl - the multi-layer perceptron of mlp.h: a text a group, four outputs of a layer a work item. Sums
// begin with the bias and take one fused product after the other in the order of inputs, as mlp.cc does, so that
// all bits are the same wherever numbers below 2^-126 are not made zero. A result is the class, and the bits of
// its output.

#pragma OPENCL FP_CONTRACT OFF

#define LANES 64
#define HEAD_WORDS 2
#define LAYER_WORDS 3
#define MOST_WIDTH 4096
#define AT_ONCE 8  // inputs whose weights, which come from afar on a GPU, are waited for together

// Four outputs, beginning with their biases; rows of weights lie `stride` apart.
static inline float4 sums_of(__global const float4* biases, uint stride, uint n_inputs,
                             __local const float* in) {
  __global const float4* row = biases + stride;
  float4 sums = biases[0];
  uint i = 0;
  for (; i + AT_ONCE <= n_inputs; i += AT_ONCE, row += AT_ONCE * stride) {
    float4 weights[AT_ONCE];
#pragma unroll
    for (uint k = 0; k < AT_ONCE; ++k) weights[k] = row[k * stride];
#pragma unroll
    for (uint k = 0; k < AT_ONCE; ++k) sums = fma(weights[k], (float4)(in[i + k]), sums);
  }
  for (; i < n_inputs; ++i, row += stride) sums = fma(row[0], (float4)(in[i]), sums);
  return sums;
}

static inline float4 without_negatives(float4 x) {
  x.x = x.x > 0 ? x.x : 0, x.y = x.y > 0 ? x.y : 0;
  x.z = x.z > 0 ? x.z : 0, x.w = x.w > 0 ? x.w : 0;
  return x;
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void classify(
    __global const uint* bytes, __global const uint2* places, uint n, __global uint* results,
    __global const uint* table) {
  __local float4 values[2][MOST_WIDTH / 4];  // as much as any device has
  const uint item = get_group_id(0), lane = get_local_id(0);
  const uint n_layers = table[0];
  const float scale = as_float(table[1]);
  __global const uint* layer = table + HEAD_WORDS;
  __global const float4* biases =
      (__global const float4*)table + (HEAD_WORDS + LAYER_WORDS * n_layers + 3) / 4;

  __local float* inputs = (__local float*)values[0];
  __global const uchar* text = (__global const uchar*)bytes + places[item].x;
  const uint n_bytes = places[item].y;
  for (uint i = lane; i < layer[0]; i += LANES)
    inputs[i] = i < n_bytes ? convert_float(text[i]) * scale : 0;

  for (uint l = 0; l < n_layers; ++l, layer += LAYER_WORDS) {
    const uint n_inputs = layer[0], stride = layer[2] / 4;
    __local const float* in = (__local const float*)values[l % 2];
    __local float4* out = values[(l + 1) % 2];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint o = lane; o < stride; o += LANES) {
      const float4 sums = sums_of(biases + o, stride, n_inputs, in);
      out[o] = l + 1 == n_layers ? sums : without_negatives(sums);
    }
    biases += (n_inputs + 1) * stride;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  // Of equal highest outputs the first wins. One that is NaN is highest only if it is the first of all.
  __local const float* outputs = (__local const float*)values[n_layers % 2];
  __local float* bests = (__local float*)values[(n_layers + 1) % 2];
  const uint n_outputs = (layer - LAYER_WORDS)[1];
  uint best = 0;
  for (uint o = lane; o < n_outputs; o += LANES) best = outputs[best] < outputs[o] ? o : best;
  bests[lane] = convert_float(best);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane == 0) {
    for (uint other = 1; other < LANES; ++other) {
      const uint at = (uint)bests[other];
      if (outputs[best] < outputs[at] || (outputs[best] == outputs[at] && at < best)) best = at;
    }
    results[2 * item] = best;
    results[2 * item + 1] = isnan(outputs[best]) ? 0 : as_uint(outputs[best]);
  }
}
