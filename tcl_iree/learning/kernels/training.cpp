// A block forwards and backwards, for learning. What a sequence needs on the way is made again when it is gone through
// backwards: it stays in the nearest cache then, and nothing but inputs has to be kept in between.
#include "block.h"

namespace {

// Sums of gradients of a block's weights, in the weights' own order.
struct Slopes {
  float *in, *taps, *bias, *mix, *spread, *spread_bias, *rates, *skip, *out;

  // `all` has room for every one of them, one after the other.
  Slopes(float* all, const Shape& shape) {
    const int64_t channels = shape.channels;
    in = all;
    taps = in + shape.width * 2 * channels;
    bias = taps + shape.kernel * channels;
    mix = bias + channels;
    spread = mix + channels * shape.mixed;
    spread_bias = spread + shape.rank * channels;
    rates = spread_bias + channels;
    skip = rates + shape.count * channels;
    out = skip + channels;
  }
};

// Weights as the way back needs them: output x input.
struct Turned {
  const float *in, *mix, *out;
};

// What is on the way back.
struct Backwards {
  std::vector<float> gated, projected, mixes, x, delta, carried;

  Backwards(const Shape& shape, int64_t length)
      : gated(length * shape.channels), projected(length * 2 * shape.channels), mixes(length * shape.mixed),
        x(length * shape.channels), delta(shape.channels), carried(shape.count * shape.channels) {}

  // From the gradient of the outputs to that of the inputs; `steps` holds what the way forwards made. The outputs' gates
  // are applied here: on the way forwards they were left out.
  void run(const Block& block, const Turned& turned, const Shape& shape, Steps<true>& steps, Slopes& slopes,
           const float* gradient, float* inputs, int64_t length) {
    const int64_t channels = shape.channels, both = 2 * channels, mixed = shape.mixed, count = shape.count;
    const int64_t rank = shape.rank, kernel = shape.kernel, plane = count * channels;
    const float two = 0.69314718056f;
    multiply<false>(gradient, turned.out, gated.data(), length, channels, shape.width);
    std::memset(carried.data(), 0, plane * sizeof(float));
    for (int64_t t = length - 1; t >= 0; --t) {
      const float *gate = steps.projected.data() + t * both + channels, *xs = steps.x.data() + t * channels;
      const float *ds = steps.delta.data() + t * channels, *zs = steps.wanted.data() + t * channels;
      const float *hb = steps.states.data() + t * plane, *hn = hb + plane, *kept = steps.decay.data() + t * plane;
      const float* mine = steps.mixes.data() + t * mixed;
      float *ys = steps.gated.data() + t * channels, *gy = gated.data() + t * channels;
      float *ggate = projected.data() + t * both + channels, *gx = x.data() + t * channels;
      float *gm = mixes.data() + t * mixed, *gd = delta.data();
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        const float open = sigmoid(gate[c]), silu = gate[c] * open;
        ggate[c] = gy[c] * ys[c] * (open + silu * (1.0f - open));
        gy[c] *= silu;
        ys[c] *= silu;  // now what the last product was given
        gx[c] = gy[c] * block.skip[c];
        slopes.skip[c] += gy[c] * xs[c];
        gd[c] = 0.0f;
      }
      for (int64_t m = 0; m < mixed; ++m) gm[m] = 0.0f;
      for (int64_t s = 0; s < count; ++s) {
        const float entering = mine[rank + s], leaving = mine[rank + count + s];
        const float *rate = block.rates + s * channels, *from = hb + s * channels, *to = hn + s * channels;
        const float* stays = kept + s * channels;
        float *gh = carried.data() + s * channels, *grate = slopes.rates + s * channels;
        float sum_in = 0.0f, sum_out = 0.0f;
#pragma omp simd reduction(+ : sum_in, sum_out)
        for (int64_t c = 0; c < channels; ++c) {
          const float g = gh[c] + gy[c] * leaving;
          const float back = g * stays[c], through = back * from[c] * two;
          sum_out += gy[c] * to[c];
          sum_in += g * ds[c] * xs[c];
          gx[c] += g * ds[c] * entering;
          gd[c] += g * xs[c] * entering + through * rate[c];
          grate[c] += through * ds[c];
          gh[c] = back;
        }
        gm[rank + s] = sum_in;
        gm[rank + count + s] = sum_out;
      }
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        gd[c] *= sigmoid(zs[c]);
        slopes.spread_bias[c] += gd[c];
      }
      for (int64_t r = 0; r < rank; ++r) {
        const float* spread = block.spread + r * channels;
        float *slope = slopes.spread + r * channels, sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < channels; ++c) {
          sum += gd[c] * spread[c];
          slope[c] += gd[c] * mine[r];
        }
        gm[r] = sum;
      }
    }
    add_outer(steps.gated.data(), gradient, slopes.out, length, channels, shape.width);
    add_outer(steps.x.data(), mixes.data(), slopes.mix, length, channels, mixed);
    multiply<true>(mixes.data(), turned.mix, x.data(), length, channels, mixed);
    for (int64_t t = 0; t < length; ++t) {
      const float* v = steps.before.data() + t * channels;
      float* gv = x.data() + t * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        const float open = sigmoid(v[c]);
        gv[c] *= open + v[c] * open * (1.0f - open);
        slopes.bias[c] += gv[c];
      }
    }
    for (int64_t t = 0; t < length; ++t) {
      float* gu = projected.data() + t * both;
      for (int64_t c = 0; c < channels; ++c) gu[c] = 0.0f;
      const float* u = steps.projected.data() + t * both;
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t at = t - k + (kernel - 1);  // the step that sees this one through tap k
        if (at >= length) continue;
        const float *gv = x.data() + at * channels, *tap = block.taps + k * channels;
        float* slope = slopes.taps + k * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) {
          gu[c] += gv[c] * tap[c];
          slope[c] += gv[c] * u[c];
        }
      }
    }
    add_outer(steps.inputs.data(), projected.data(), slopes.in, length, shape.width, both);
    multiply<false>(projected.data(), turned.in, inputs, length, shape.width, both);
  }
};

}  // namespace

extern "C" {

// inputs and outputs are batch x length x width.
void block_forward(const float* inputs, float* outputs, const Block* block, const Shape* shape, int64_t batch,
                   int64_t length, int threads) {
  const int64_t size = length * shape->width;
#pragma omp parallel num_threads(threads)
  {
    Steps<false> steps(*shape, length);
#pragma omp for schedule(static)
    for (int64_t b = 0; b < batch; ++b) {
      std::memcpy(steps.inputs.data(), inputs + b * size, size * sizeof(float));
      steps.run(*block, *shape, length);
      multiply<false>(steps.result(), block->out, outputs + b * size, length, shape->width, shape->channels);
    }
  }
}

// Gradients of the inputs, and of the weights one after the other, `room` numbers for each thread.
void block_backward(const float* gradient, const float* inputs, const Block* block, const float* in_turned,
                    const float* mix_turned, const float* out_turned, float* input_slopes, float* weight_slopes,
                    int64_t room, const Shape* shape, int64_t batch, int64_t length, int threads) {
  const int64_t size = length * shape->width;
  const Turned turned{in_turned, mix_turned, out_turned};
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int thread = 0; thread < threads; ++thread) {
    Steps<true> steps(*shape, length);
    Backwards way(*shape, length);
    Slopes slopes(weight_slopes + thread * room, *shape);
    for (int64_t b = thread; b < batch; b += threads) {
      std::memcpy(steps.inputs.data(), inputs + b * size, size * sizeof(float));
      steps.run(*block, *shape, length);
      way.run(*block, turned, *shape, steps, slopes, gradient + b * size, input_slopes + b * size, length);
    }
  }
}

}  // extern "C"
