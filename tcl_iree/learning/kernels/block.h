// A Mamba block, all steps of one sequence in one go.
//
//     h[t] = exp(delta[t] * A) * h[t-1] + delta[t] * B[t] * x[t]        y[t] = C[t] . h[t] + D * x[t]
//
// Weights are input x output, and neighbouring channels are neighbours in memory everywhere.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "arithmetic.h"

// `mix` is padded to `mixed` columns, of which the first `rank` are delta's, then B's, then C's; `rates` are A in powers of
// two, state x channel; `earlier` are the inputs that the convolution still sees, `start` is the state, of a sequence that
// goes on from rows read before.
struct Block {
  const float *in, *taps, *bias, *mix, *spread, *spread_bias, *rates, *skip, *out, *norm, *earlier, *start;
};

struct Shape {
  int64_t width, channels, rank, mixed, count, kernel, columns;
  float epsilon;
};

// What a block makes of a sequence on the way from its inputs to what the last product turns into its outputs (`gated`).
// If it is to be gone through backwards (KEEP), every step's numbers stay; else a step may overwrite the one before, and
// `x` is overwritten too.
template <bool KEEP>
struct Steps {
  std::vector<float> inputs, projected, before, x, mixes, wanted, delta, decay, states, gated, scaled;

  Steps(const Shape& shape, int64_t length)
      : inputs(length * shape.width), projected(length * 2 * shape.channels), before(kept(length) * shape.channels),
        x(length * shape.channels), mixes(length * shape.mixed), wanted(kept(length) * shape.channels),
        delta(kept(length) * shape.channels), decay(KEEP ? length * shape.count * shape.channels : 0),
        states((KEEP ? length + 1 : 1) * shape.count * shape.channels), gated(KEEP ? length * shape.channels : 0),
        scaled(shape.channels) {}

  static int64_t kept(int64_t length) { return KEEP ? length : 1; }

  float* result() { return KEEP ? gated.data() : x.data(); }

  // y of a step, while it is made and afterwards: it takes the place of x unless that is kept.
  float* summed(int64_t t, int64_t channels) { return result() + t * channels; }

  void run(const Block& block, const Shape& shape, int64_t length) {
    const int64_t channels = shape.channels, both = 2 * channels, mixed = shape.mixed, count = shape.count;
    const int64_t rank = shape.rank, kernel = shape.kernel, plane = count * channels;
    multiply<false>(inputs.data(), block.in, projected.data(), length, both, shape.width);
    for (int64_t t = 0; t < length; ++t) {
      float *v = before.data() + (KEEP ? t * channels : 0), *xs = x.data() + t * channels;
      for (int64_t c = 0; c < channels; ++c) v[c] = block.bias[c];
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t at = t + k - (kernel - 1);
        if (at < 0 && !block.earlier) continue;
        const float* seen = at >= 0 ? projected.data() + at * both : block.earlier + (kernel - 1 + at) * channels;
        const float* tap = block.taps + k * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) v[c] += seen[c] * tap[c];
      }
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) xs[c] = v[c] * sigmoid(v[c]);
    }
    multiply<false>(x.data(), block.mix, mixes.data(), length, mixed, channels);
    if (block.start)
      std::memcpy(states.data(), block.start, plane * sizeof(float));
    else
      std::memset(states.data(), 0, plane * sizeof(float));
    for (int64_t t = 0; t < length; ++t) {
      const int64_t at = KEEP ? t : 0;
      const float *xs = x.data() + t * channels, *mine = mixes.data() + t * mixed;
      const float *gate = projected.data() + t * both + channels, *hb = states.data() + at * plane;
      float *zs = wanted.data() + at * channels, *ds = delta.data() + at * channels, *dx = scaled.data();
      float *hn = states.data() + (KEEP ? t + 1 : 0) * plane, *ys = summed(t, channels);
      for (int64_t c = 0; c < channels; ++c) zs[c] = block.spread_bias[c];
      for (int64_t r = 0; r < rank; ++r)
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) zs[c] += mine[r] * block.spread[r * channels + c];
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        ds[c] = softplus(zs[c]);
        dx[c] = ds[c] * xs[c];
        ys[c] = block.skip[c] * xs[c];
      }
      for (int64_t s = 0; s < count; ++s) {
        const float entering = mine[rank + s], leaving = mine[rank + count + s];
        const float *rate = block.rates + s * channels, *from = hb + s * channels;
        float *to = hn + s * channels, *kept_decay = decay.data() + (KEEP ? at * plane + s * channels : 0);
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) {
          const float stays = power(ds[c] * rate[c]);
          if (KEEP) kept_decay[c] = stays;
          to[c] = stays * from[c] + dx[c] * entering;
          ys[c] += leaving * to[c];
        }
      }
      if (!KEEP)
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) ys[c] *= gate[c] * sigmoid(gate[c]);
    }
  }
};
