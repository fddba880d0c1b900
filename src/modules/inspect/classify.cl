// SPDX-License-Identifier: BSD-3-Clause
// classify.cl - the multi-layer perceptron of mlp.h: a few texts a group, which share each reading of weights, and
// four outputs of a layer for some of them a work item. Sums begin with the bias and take one fused product after the
// other in the order of inputs, as mlp.cc does, so that all bits are the same wherever numbers below 2^-126 are not
// made zero. A result is the class, and the bits of its output.

#pragma OPENCL FP_CONTRACT OFF

#define LANES 128
#define TEXTS 8       // of a group
#define SHARED 2      // texts for which a work item uses weights that it has read
#define AT_ONCE 16    // inputs whose weights, which come from afar on a GPU, are waited for together
#define WORDS_EACH 4  // so are words of texts
#define HEAD_WORDS 3
#define LAYER_WORDS 3
#define MOST_WIDTH 4096

static inline float input_of(uint word, uint k, uint at, uint n_bytes, float scale) {
  return at + k < n_bytes ? convert_float(word >> 8 * k & 0xff) * scale : 0;
}

// The inputs of n texts, n_words * 4 of each, to rows of `width`.
static inline void take_inputs(__local float4* to, uint width, __global const uint* bytes,
                               __global const uint2* restrict places, uint n, uint n_words, float scale) {
  for (uint begin = get_local_id(0); begin < n_words * n; begin += WORDS_EACH * LANES) {
    uint read[WORDS_EACH];
#pragma unroll
    for (uint k = 0; k < WORDS_EACH; ++k) {
      const uint unit = begin + k * LANES, t = unit / n_words, word = unit % n_words;
      if (t < n && 4 * word < places[t].y) read[k] = bytes[places[t].x / 4 + word];
    }
#pragma unroll
    for (uint k = 0; k < WORDS_EACH; ++k) {
      const uint unit = begin + k * LANES, t = unit / n_words, word = unit % n_words;
      if (t >= n) continue;
      const uint at = 4 * word, n_bytes = places[t].y;
      to[t * width + word] = (float4)(
          input_of(read[k], 0, at, n_bytes, scale), input_of(read[k], 1, at, n_bytes, scale),
          input_of(read[k], 2, at, n_bytes, scale), input_of(read[k], 3, at, n_bytes, scale));
    }
  }
}

// Four outputs for each of SHARED texts, from the biases on; rows of weights lie `stride` apart.
static inline void sum_up(float4* sums, __global const float4* biases, uint stride, uint n_inputs,
                          __local const float4* const* in) {
  __global const float4* row = biases + stride;
#pragma unroll
  for (uint t = 0; t < SHARED; ++t) sums[t] = biases[0];
  uint i = 0;
  for (; i + AT_ONCE <= n_inputs; i += AT_ONCE, row += AT_ONCE * stride) {
    float4 weights[AT_ONCE];
#pragma unroll
    for (uint k = 0; k < AT_ONCE; ++k) weights[k] = row[k * stride];
#pragma unroll
    for (uint k = 0; k < AT_ONCE; k += 4) {
#pragma unroll
      for (uint t = 0; t < SHARED; ++t) {
        const float4 x = in[t][(i + k) / 4];
        sums[t] = fma(weights[k], (float4)(x.x), sums[t]);
        sums[t] = fma(weights[k + 1], (float4)(x.y), sums[t]);
        sums[t] = fma(weights[k + 2], (float4)(x.z), sums[t]);
        sums[t] = fma(weights[k + 3], (float4)(x.w), sums[t]);
      }
    }
  }
  for (; i < n_inputs; ++i, row += stride) {
#pragma unroll
    for (uint t = 0; t < SHARED; ++t)
      sums[t] = fma(row[0], (float4)(((__local const float*)in[t])[i]), sums[t]);
  }
}

static inline float4 without_negatives(float4 x) {
  x.x = x.x > 0 ? x.x : 0, x.y = x.y > 0 ? x.y : 0;
  x.z = x.z > 0 ? x.z : 0, x.w = x.w > 0 ? x.w : 0;
  return x;
}

// A layer's outputs for n texts; work items beyond the last text compute that one again.
static inline void compute(__local float4* out, __local const float4* in, uint width, uint n,
                           __global const uint* layer, __global const float4* biases,
                           bool is_last) {
  const uint n_vectors = (layer[1] + 3) / 4, n_shares = (n + SHARED - 1) / SHARED;
  for (uint unit = get_local_id(0); unit < n_vectors * n_shares; unit += LANES) {
    const uint first = unit / n_vectors * SHARED, o = unit % n_vectors;
    float4 sums[SHARED];
    __local const float4* from[SHARED];
#pragma unroll
    for (uint t = 0; t < SHARED; ++t) from[t] = in + min(first + t, n - 1) * width;
    sum_up(sums, biases + o, layer[2] / 4, layer[0], from);
#pragma unroll
    for (uint t = 0; t < SHARED; ++t)
      out[min(first + t, n - 1) * width + o] = is_last ? sums[t] : without_negatives(sums[t]);
  }
}

// The classes of n texts. Of equal highest outputs the first wins. One that is NaN is highest only if it is the first
// of all.
static inline void choose(__global uint* results, __local uint* bests, __local const float4* out,
                          uint width, uint n, uint n_outputs) {
  const uint lane = get_local_id(0), n_lanes = LANES / n;  // of a text
  const uint t = lane / n_lanes, begin = lane % n_lanes;
  __local const float* outputs = (__local const float*)(out + min(t, n - 1) * width);
  uint best = 0;
  for (uint o = begin; o < n_outputs; o += n_lanes) best = outputs[best] < outputs[o] ? o : best;
  bests[lane] = best;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t >= n || begin != 0) return;
  for (uint k = 1; k < min(n_lanes, n_outputs); ++k) {
    const uint other = bests[lane + k];
    if (outputs[best] < outputs[other] || (outputs[best] == outputs[other] && other < best))
      best = other;
  }
  results[2 * t] = best;
  results[2 * t + 1] = isnan(outputs[best]) ? 0 : as_uint(outputs[best]);
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void classify(
    __global const uint* restrict bytes, __global const uint2* restrict places, uint n,
    __global uint* restrict results, __global const uint* restrict table) {
  __local float4 values[2][MOST_WIDTH / 4];  // as much as any device has
  const uint first = get_group_id(0) * TEXTS;
  const uint n_texts = min(n - first, (uint)TEXTS);
  const uint n_layers = table[0], width = table[2];
  const uint most = min(MOST_WIDTH / 4 / width, (uint)TEXTS);  // texts that `values` has room for

  for (uint begin = 0; begin < n_texts; begin += most) {
    const uint n_here = min(n_texts - begin, most);
    __global const uint* layer = table + HEAD_WORDS;
    __global const float4* biases =
        (__global const float4*)table + (HEAD_WORDS + LAYER_WORDS * n_layers + 3) / 4;
    barrier(CLK_LOCAL_MEM_FENCE);
    take_inputs(values[0], width, bytes, places + first + begin, n_here, (layer[0] + 3) / 4,
                as_float(table[1]));
    for (uint l = 0; l < n_layers; ++l, layer += LAYER_WORDS) {
      barrier(CLK_LOCAL_MEM_FENCE);
      compute(values[(l + 1) % 2], values[l % 2], width, n_here, layer, biases, l + 1 == n_layers);
      biases += (layer[0] + 1) * (layer[2] / 4);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    choose(results + 2 * (first + begin), (__local uint*)values[(n_layers + 1) % 2], values[n_layers % 2], width, n_here,
           (layer - LAYER_WORDS)[1]);
  }
}
