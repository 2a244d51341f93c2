/* Vectors of one register, and products of small matrices of words: a word is one float32, or a pair of
   bf16 where the CPU multiplies those (DOT). */
#include <stdint.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#else
#error "AVX2 or AVX-512 is needed"
#endif
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define WIDE 1
enum { LANES = 16, VECTORS = 4 }; /* lanes of a vector; vectors of a tile's row that fit in the registers */
#else
#define WIDE 0
enum { LANES = 8, VECTORS = 2 };
#endif
#if WIDE && defined(__AVX512BF16__)
#define DOT 1
#else
#define DOT 0
#endif
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define EACH(i, count) UNROLL for (int i = 0; i < (count); i++)

typedef float f32 __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t i32 __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t u32 __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t u16 __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

INLINE f32 splat(float x) { return x - (f32){0}; }
INLINE f32 pick(i32 mask, f32 x, f32 y) { return (f32)((mask & (i32)x) | (~mask & (i32)y)); }
INLINE f32 widen(u16 x) { return (f32)(__builtin_convertvector(x, u32) << 16); }
INLINE f32 widened(const void *x) { return widen(*(const u16 *)x); }
/* To nearest even; NaN stays NaN. */
INLINE u16 narrow(f32 x) {
#if DOT
    return (u16)_mm512_cvtneps_pbh((__m512)x);
#else
    const u32 bits = (u32)x, up = bits + 0x7fff + ((bits >> 16) & 1), number = (u32)(x == x);
    return __builtin_convertvector(((number & up) | (~number & (bits | 0x400000))) >> 16, u16);
#endif
}
INLINE f32 higher(f32 x, f32 y) {
#if WIDE
    return (f32)_mm512_max_ps((__m512)x, (__m512)y);
#else
    return (f32)_mm256_max_ps((__m256)x, (__m256)y);
#endif
}
INLINE float highest_lane(f32 x) {
    float most = x[0];
#if WIDE
    most = _mm512_reduce_max_ps((__m512)x);
#else
    EACH(i, LANES) most = x[i] > most ? x[i] : most;
#endif
    return most;
}
INLINE float sum_lanes(f32 x) {
    float sum = 0;
    EACH(i, LANES) sum += x[i];
    return sum;
}
/* 2^x for x <= 0 with a relative error of 2e-7; exactly 0 from -127 down. */
INLINE f32 power(f32 x) {
    const f32 magic = splat(12582912.0f); /* its last bit is worth 1 */
    x = higher(x, splat(-127.0f));
    const f32 shifted = x + magic, f = x - (shifted - magic);
    f32 y = 0.001327643473f * f + 0.0096755348f;
    y = y * f + 0.05550713317f;
    y = y * f + 0.2402211985f;
    y = y * f + 0.6931469671f;
    y = y * f + 1.0f;
    return y * (f32)(((i32)shifted - (i32)magic + 127) << 23);
}

/* Words of LANES rows to LANES words of each row. */
INLINE void transpose(u32 x[LANES]) {
    u32 t[LANES];
#if WIDE
#define PAIR(name, a, b) (u32) _mm512_unpack##name((__m512i)(a), (__m512i)(b))
#define QUARTERS(a, b, which) (u32) _mm512_shuffle_i32x4((__m512i)(a), (__m512i)(b), which)
#else
#define PAIR(name, a, b) (u32) _mm256_unpack##name((__m256i)(a), (__m256i)(b))
#define HALVES(a, b, which) (u32) _mm256_permute2x128_si256((__m256i)(a), (__m256i)(b), which)
#endif
    EACH(i, LANES / 2) {
        t[2 * i] = PAIR(lo_epi32, x[2 * i], x[2 * i + 1]);
        t[2 * i + 1] = PAIR(hi_epi32, x[2 * i], x[2 * i + 1]);
    }
    EACH(i, LANES / 4) EACH(j, 2) {
        x[4 * i + 2 * j] = PAIR(lo_epi64, t[4 * i + j], t[4 * i + j + 2]);
        x[4 * i + 2 * j + 1] = PAIR(hi_epi64, t[4 * i + j], t[4 * i + j + 2]);
    }
    EACH(i, 4) {
#if WIDE
        const u32 a = QUARTERS(x[i], x[i + 4], 0x88), b = QUARTERS(x[i + 8], x[i + 12], 0x88);
        const u32 c = QUARTERS(x[i], x[i + 4], 0xdd), d = QUARTERS(x[i + 8], x[i + 12], 0xdd);
        x[i] = QUARTERS(a, b, 0x88), x[i + 8] = QUARTERS(a, b, 0xdd);
        x[i + 4] = QUARTERS(c, d, 0x88), x[i + 12] = QUARTERS(c, d, 0xdd);
#else
        const u32 a = x[i];
        x[i] = HALVES(a, x[i + 4], 0x20), x[i + 4] = HALVES(a, x[i + 4], 0x31);
#endif
    }
}

/* sum + word * x, lane by lane: the word is of the one operand, x holds words of the other. */
INLINE f32 add_product(const int dot, f32 sum, uint32_t word, u32 x) {
#if DOT
    if (dot) return (f32)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int)word), (__m512bh)x);
#endif
    (void)dot;
    float factor;
    memcpy(&factor, &word, 4);
    return sum + factor * (f32)x;
}
INLINE void product_tile(const int dot, const int rows, const int vectors, int64_t depth, const uint32_t *a,
                         int64_t a_stride, const uint32_t *b, int64_t b_stride, float *c, int64_t c_stride, int add) {
    f32 sum[6][VECTORS];
    EACH(r, rows) EACH(v, vectors) sum[r][v] = add ? *(f32 *)(c + r * c_stride + v * LANES) : splat(0);
    for (int64_t k = 0; k < depth; k++) {
        u32 x[VECTORS];
        EACH(v, vectors) x[v] = *(const u32 *)(b + k * b_stride + v * LANES);
        EACH(r, rows) {
            const uint32_t word = a[r * a_stride + k];
            EACH(v, vectors) sum[r][v] = add_product(dot, sum[r][v], word, x[v]);
        }
    }
    EACH(r, rows) EACH(v, vectors) *(f32 *)(c + r * c_stride + v * LANES) = sum[r][v];
}
/* c[rows][columns] (+)= a[rows][depth] * b[depth][columns]; columns is a multiple of LANES. */
INLINE void product(const int dot, int64_t rows, int64_t columns, int64_t depth, const uint32_t *a, int64_t a_stride,
                    const uint32_t *b, int64_t b_stride, float *c, int64_t c_stride, int add) {
#define TILE(R, V) \
    product_tile(dot, R, V, depth, a + r * a_stride, a_stride, b + j, b_stride, c + r * c_stride + j, c_stride, add), r += R
#define STRIP(V) \
    for (; columns - j >= V * LANES; j += V * LANES) { \
        int64_t r = 0; \
        while (rows - r >= 6) TILE(6, V); \
        while (rows - r >= 3) TILE(3, V); \
        while (rows - r >= 1) TILE(1, V); \
    }
    int64_t j = 0;
    STRIP(VECTORS)
#if WIDE
    STRIP(2)
#endif
    STRIP(1)
}
