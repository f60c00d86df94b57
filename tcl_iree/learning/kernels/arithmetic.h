// Functions of single numbers, in forms that compilers make vectors of, and small products of matrices. All of f32.
#pragma once

#include <cstdint>
#include <cstring>

// 2^x for x up to about 120, to about one unit in the last place.
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

// c (left x right) += a^T (left x rows) * b (rows x right); right is a multiple of 16.
template <int LEFT>
inline void outer_tile(const float* a, const float* b, float* c, int64_t rows, int64_t left, int64_t right) {
  Eight low[LEFT], high[LEFT];
#pragma GCC unroll 8
  for (int i = 0; i < LEFT; ++i) low[i] = high[i] = Eight{};
  for (int64_t t = 0; t < rows; ++t) {
    const Eight first = *reinterpret_cast<const Eight*>(b + t * right);
    const Eight second = *reinterpret_cast<const Eight*>(b + t * right + 8);
#pragma GCC unroll 8
    for (int i = 0; i < LEFT; ++i) {
      const float scale = a[t * left + i];
      low[i] += scale * first;
      high[i] += scale * second;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < LEFT; ++i) {
    Eight* to = reinterpret_cast<Eight*>(c + i * right);
    to[0] += low[i];
    to[1] += high[i];
  }
}

// The same for all of c; left is a multiple of 8.
inline void add_outer(const float* a, const float* b, float* c, int64_t rows, int64_t left, int64_t right) {
  for (int64_t i = 0; i < left; i += 8)
    for (int64_t j = 0; j < right; j += 16) outer_tile<8>(a + i, b + j, c + i * right + j, rows, left, right);
}
