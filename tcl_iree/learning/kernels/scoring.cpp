// Candidates are scored by thousands: sequences without gradients, from the rows after those they share to the sum of
// their rows and the last.
#include <cmath>

#include "block.h"

namespace {

// rows += block(norm(rows)).
void read_block(const Block& block, const Shape& shape, Steps<false>& steps, float* rows, int64_t length) {
  const int64_t width = shape.width;
  for (int64_t t = 0; t < length; ++t) {
    const float* row = rows + t * width;
    float* normed = steps.inputs.data() + t * width;
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < width; ++c) squares += row[c] * row[c];
    const float scale = 1.0f / std::sqrt(squares / width + shape.epsilon);
    for (int64_t c = 0; c < width; ++c) normed[c] = row[c] * scale * block.norm[c];
  }
  steps.run(block, shape, length);
  multiply<true>(steps.result(), block.out, rows, length, width, shape.channels);
}

}  // namespace

extern "C" {

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
    std::vector<float> sequence((stride - shared) * width);
    Steps<false> steps(*shape, stride - shared);
#pragma omp for schedule(static)
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = lengths[b] - shared;
      float* rows = sequence.data();
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
      for (int64_t d = 0; d < depth; ++d) read_block(blocks[d], *shape, steps, rows, length);
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
