// The recurrence of a Mamba block on a CPU, all steps of a sequence in one go.
//
//     h[t] = exp(delta[t] * A) * h[t-1] + delta[t] * B[t] * x[t]        y[t] = C[t] . h[t]
//
// Arrays are contiguous and of f32: x, delta, y are batch x length x channel; B, C are batch x length x state; A is
// state x channel, so that neighbouring channels are neighbours in memory; states are batch x length x state x channel.
// Sequences are independent: threads share them out.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

// 2^x for x up to about 120, to about one unit in the last place, in a form that compilers make vectors of.
inline float power(float x) {
  x = x < -125.0f ? -125.0f : x;
  const float shifted = x + 12582912.0f;  // the nearest integer, in the last bits
  const float r = x - (shifted - 12582912.0f);
  float p = 1.5403530e-4f;
  p = p * r + 1.3333558e-3f;
  p = p * r + 9.6181291e-3f;
  p = p * r + 5.5504109e-2f;
  p = p * r + 2.4022651e-1f;
  p = p * r + 6.9314718e-1f;
  p = p * r + 1.0f;
  int32_t whole, bits;
  std::memcpy(&whole, &shifted, sizeof whole);
  std::memcpy(&bits, &p, sizeof bits);
  bits += whole << 23;
  std::memcpy(&p, &bits, sizeof p);
  return p;
}

inline float fast_exp(float x) {
  x = x > 80.0f ? 80.0f : x;
  return power(x * 1.44269504088896341f);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

// log(1 + exp(x)); log by a polynomial on 1 + e in [1, 2] of what is left after taking out x's positive part.
inline float softplus(float x) {
  float positive = x > 0.0f ? x : 0.0f;
  float away = x > 0.0f ? -x : x;
  float e = fast_exp(away);          // in (0, 1]
  float z = e / (2.0f + e);          // log(1 + e) = 2 artanh(e / (2 + e))
  float z2 = z * z;
  float series = 1.0f / 11.0f;
  series = series * z2 + 1.0f / 9.0f;
  series = series * z2 + 1.0f / 7.0f;
  series = series * z2 + 1.0f / 5.0f;
  series = series * z2 + 1.0f / 3.0f;
  series = series * z2 + 1.0f;
  return positive + 2.0f * z * series;
}

// Eight numbers at any address.
typedef float Eight __attribute__((vector_size(32), aligned(4)));

// A tile of up to 6 rows and 16 columns of a product, its sums in registers.
template <int ROWS, bool ADD>
inline void tile(const float* a, const float* b, float* c, int64_t columns, int64_t inner) {
  Eight low[ROWS], high[ROWS];
#pragma GCC unroll 6
  for (int i = 0; i < ROWS; ++i) low[i] = high[i] = Eight{};
  for (int64_t k = 0; k < inner; ++k) {
    const Eight first = *reinterpret_cast<const Eight*>(b + k * columns);
    const Eight second = *reinterpret_cast<const Eight*>(b + k * columns + 8);
#pragma GCC unroll 6
    for (int i = 0; i < ROWS; ++i) {
      const float left = a[i * inner + k];
      low[i] += left * first;
      high[i] += left * second;
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < ROWS; ++i) {
    Eight* to = reinterpret_cast<Eight*>(c + i * columns);
    to[0] = ADD ? to[0] + low[i] : low[i];
    to[1] = ADD ? to[1] + high[i] : high[i];
  }
}

// c (rows x columns) = or += a (rows x inner) * b (inner x columns); columns are a multiple of 16.
template <bool ADD>
void multiply(const float* a, const float* b, float* c, int64_t rows, int64_t columns, int64_t inner) {
  for (int64_t j = 0; j < columns; j += 16) {
    int64_t i = 0;
    for (; i + 6 <= rows; i += 6) tile<6, ADD>(a + i * inner, b + j, c + i * columns + j, columns, inner);
    const float* left = a + i * inner;
    float* made = c + i * columns + j;
    switch (rows - i) {
      case 5: tile<5, ADD>(left, b + j, made, columns, inner); break;
      case 4: tile<4, ADD>(left, b + j, made, columns, inner); break;
      case 3: tile<3, ADD>(left, b + j, made, columns, inner); break;
      case 2: tile<2, ADD>(left, b + j, made, columns, inner); break;
      case 1: tile<1, ADD>(left, b + j, made, columns, inner); break;
    }
  }
}

// A block as it goes on from rows that many sequences share. Weights are input x output; `mix` is padded to `mixed` columns,
// of which the first `rank` are delta's, then B's, then C's; `rates` are in powers of two; `earlier` are the inputs that
// the convolution still sees, `start` is the state.
struct Block {
  const float *norm, *in, *taps, *bias, *mix, *spread, *spread_bias, *rates, *skip, *out, *earlier, *start;
};

struct Shape {
  int64_t width, channels, rank, mixed, count, kernel, columns;
  float epsilon;
};

// What one sequence needs while it is read.
struct Room {
  std::vector<float> rows, normed, projected, x, mixes, held, steps, scaled;

  Room(const Shape& shape, int64_t length)
      : rows(length * shape.width), normed(length * shape.width), projected(length * 2 * shape.channels),
        x(length * shape.channels), mixes(length * shape.mixed), held(shape.count * shape.channels),
        steps(shape.channels), scaled(shape.channels) {}
};

// rows += block(norm(rows)).
void read_block(const Block& block, const Shape& shape, Room& room, int64_t length) {
  const int64_t width = shape.width, channels = shape.channels, both = 2 * channels, mixed = shape.mixed;
  const int64_t rank = shape.rank, count = shape.count, kernel = shape.kernel;
  float *h = room.held.data(), *ds = room.steps.data(), *dx = room.scaled.data();
  for (int64_t t = 0; t < length; ++t) {
    const float* row = room.rows.data() + t * width;
    float* normed = room.normed.data() + t * width;
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < width; ++c) squares += row[c] * row[c];
    const float scale = 1.0f / std::sqrt(squares / width + shape.epsilon);
    for (int64_t c = 0; c < width; ++c) normed[c] = row[c] * scale * block.norm[c];
  }
  multiply<false>(room.normed.data(), block.in, room.projected.data(), length, both, width);
  for (int64_t t = 0; t < length; ++t) {
    float* xs = room.x.data() + t * channels;
    for (int64_t c = 0; c < channels; ++c) xs[c] = block.bias[c];
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = t + k - (kernel - 1);
      const float* seen = at >= 0 ? room.projected.data() + at * both : block.earlier + (kernel - 1 + at) * channels;
      const float* tap = block.taps + k * channels;
      for (int64_t c = 0; c < channels; ++c) xs[c] += seen[c] * tap[c];
    }
    for (int64_t c = 0; c < channels; ++c) xs[c] = xs[c] * sigmoid(xs[c]);
  }
  multiply<false>(room.x.data(), block.mix, room.mixes.data(), length, mixed, channels);
  std::memcpy(h, block.start, count * channels * sizeof(float));
  for (int64_t t = 0; t < length; ++t) {
    float* xs = room.x.data() + t * channels;  // read, then overwritten by this step's output
    const float *gate = room.projected.data() + t * both + channels, *mine = room.mixes.data() + t * mixed;
    for (int64_t c = 0; c < channels; ++c) ds[c] = block.spread_bias[c];
    for (int64_t r = 0; r < rank; ++r)
      for (int64_t c = 0; c < channels; ++c) ds[c] += mine[r] * block.spread[r * channels + c];
    for (int64_t c = 0; c < channels; ++c) {
      ds[c] = softplus(ds[c]);
      dx[c] = ds[c] * xs[c];
      xs[c] = block.skip[c] * xs[c];
    }
    for (int64_t s = 0; s < count; ++s) {
      const float entering = mine[rank + s], leaving = mine[rank + count + s];
      const float* rate = block.rates + s * channels;
      float* hs = h + s * channels;
      for (int64_t c = 0; c < channels; ++c) {
        hs[c] = power(ds[c] * rate[c]) * hs[c] + dx[c] * entering;
        xs[c] += leaving * hs[c];
      }
    }
    for (int64_t c = 0; c < channels; ++c) xs[c] = xs[c] * gate[c] * sigmoid(gate[c]);
  }
  multiply<true>(room.x.data(), block.out, room.rows.data(), length, width, channels);
}

}  // namespace

extern "C" {

// y and all states, for training.
void scan_forward(const float* x, const float* delta, const float* A, const float* B, const float* C, float* y,
                  float* states, int64_t batch, int64_t length, int64_t channels, int64_t count, int threads) {
  const int64_t plane = count * channels;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<float> held(plane, 0.0f);
    float* h = held.data();
    for (int64_t t = 0; t < length; ++t) {
      const int64_t row = b * length + t;
      const float *xs = x + row * channels, *ds = delta + row * channels;
      float* ys = y + row * channels;
      for (int64_t c = 0; c < channels; ++c) ys[c] = 0.0f;
      for (int64_t s = 0; s < count; ++s) {
        const float entering = B[row * count + s], leaving = C[row * count + s];
        const float* rate = A + s * channels;
        float* hs = h + s * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) {
          hs[c] = fast_exp(ds[c] * rate[c]) * hs[c] + ds[c] * xs[c] * entering;
          ys[c] += leaving * hs[c];
        }
      }
      std::memcpy(states + row * plane, h, plane * sizeof(float));
    }
  }
}

// Gradients of everything; gA is batch x state x channel, to be summed over the batch.
void scan_backward(const float* gy, const float* x, const float* delta, const float* A, const float* B, const float* C,
                   const float* states, float* gx, float* gdelta, float* gA, float* gB, float* gC, int64_t batch,
                   int64_t length, int64_t channels, int64_t count, int threads) {
  const int64_t plane = count * channels;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<float> held(plane, 0.0f), nothing(plane, 0.0f);
    float* carried = held.data();  // the gradient of h[t] from later steps
    float* gAb = gA + b * plane;
    for (int64_t i = 0; i < plane; ++i) gAb[i] = 0.0f;
    for (int64_t t = length - 1; t >= 0; --t) {
      const int64_t row = b * length + t;
      const float *xs = x + row * channels, *ds = delta + row * channels, *gys = gy + row * channels;
      const float* now = states + row * plane;
      const float* before = t ? states + (row - 1) * plane : nothing.data();
      float *gxs = gx + row * channels, *gds = gdelta + row * channels;
      for (int64_t c = 0; c < channels; ++c) gxs[c] = gds[c] = 0.0f;
      for (int64_t s = 0; s < count; ++s) {
        const float entering = B[row * count + s], leaving = C[row * count + s];
        const float *rate = A + s * channels, *hn = now + s * channels, *hb = before + s * channels;
        float *gh = carried + s * channels, *gAs = gAb + s * channels;
        float sum_b = 0.0f, sum_c = 0.0f;
#pragma omp simd reduction(+ : sum_b, sum_c)
        for (int64_t c = 0; c < channels; ++c) {
          const float decay = fast_exp(ds[c] * rate[c]);
          const float g = gh[c] + gys[c] * leaving;
          const float through = g * decay * hb[c];
          sum_c += gys[c] * hn[c];
          sum_b += g * ds[c] * xs[c];
          gxs[c] += g * ds[c] * entering;
          gds[c] += g * xs[c] * entering + through * rate[c];
          gAs[c] += through * ds[c];
          gh[c] = g * decay;
        }
        gB[row * count + s] = sum_b;
        gC[row * count + s] = sum_c;
      }
    }
  }
}

// For scoring: sequences without gradients, from the rows after those they share to the sum of their rows and the last.
// One sequence at a time, so that all it needs stays in the cache.
//
// numbers are batch x stride x columns; `pooled` gets the last row, then the mean over all rows, the `shared` ones, whose
// last row and sum are given, included.
void read_sequences(const int64_t* kinds, const int64_t* roles, const float* numbers, const int64_t* lengths,
                    const float* kind_table, const float* role_table, const float* number_weight,
                    const float* number_bias, const float* shared_last, const float* shared_sum, const Block* blocks,
                    const Shape* shape, float* pooled, int64_t batch, int64_t stride, int64_t shared, int64_t depth,
                    int threads) {
  const int64_t width = shape->width, columns = shape->columns;
#pragma omp parallel num_threads(threads)
  {
    Room room(*shape, stride - shared);
#pragma omp for schedule(static)
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = lengths[b] - shared;
      float* rows = room.rows.data();
      for (int64_t t = 0; t < length; ++t) {
        const int64_t at = b * stride + shared + t;
        const float *kind = kind_table + kinds[at] * width, *role = role_table + roles[at] * width;
        float* row = rows + t * width;
        for (int64_t c = 0; c < width; ++c) row[c] = number_bias[c] + kind[c] + role[c];
        for (int64_t n = 0; n < columns; ++n) {
          const float number = numbers[at * columns + n];
          if (number == 0.0f) continue;
          for (int64_t c = 0; c < width; ++c) row[c] += number * number_weight[n * width + c];
        }
      }
      for (int64_t d = 0; d < depth; ++d) read_block(blocks[d], *shape, room, length);
      const float* last = length ? rows + (length - 1) * width : shared_last;
      float *end = pooled + b * 2 * width, *mean = end + width;
      for (int64_t c = 0; c < width; ++c) {
        end[c] = last[c];
        mean[c] = shared_sum[c];
      }
      for (int64_t t = 0; t < length; ++t)
        for (int64_t c = 0; c < width; ++c) mean[c] += rows[t * width + c];
      for (int64_t c = 0; c < width; ++c) mean[c] /= lengths[b];
    }
  }
}

}  // extern "C"
