/* Causal attention of a step's new tokens over a paged pool of keys and values, read where they are.

   The work is cut into blocks: up to ROWS query rows of one sequence that share a KV head (the new
   tokens and the query heads of the group). A block goes through its context in tiles of KEYS keys
   with a running softmax in float32. The tiles of all blocks in a row are dealt out to the threads in
   equal shares; a block that ends up with several threads is put together from their parts. */
#include "vectors.h"

/* FEW rows: too few to be worth laying out keys and values for them in memory. */
enum { KEYS = 64, ROWS = 48, SIZE = 256, FEW = 6, PACKING = 8 };
static const float LOWEST = -1e30f, LOG2_E = 1.44269504f;

typedef struct { int64_t start, length, prefix; const int32_t *slots; } Sequence;
/* What a step has in common for all layers. bf16: of queries, keys, values and output, else float32. */
typedef struct {
    int64_t count, heads, kv_heads, size, bf16, threads;
    const Sequence *sequences;
    void *scratch;
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned); /* GOMP_parallel */
    int (*thread)(void), (*team)(void); /* omp_get_thread_num, omp_get_num_threads */
} Step;
typedef struct {
    const Step *step;
    const char *query, *keys, *values;
    char *output;
    int64_t query_stride; /* bytes from token to token */
    float scaling;
} Call;
typedef struct { const Sequence *sequence; int64_t head, first, rows, context, tiles; } Block;
typedef struct {
    Block block;
    int64_t used;
    float highest[ROWS], total[ROWS * LANES], mixed[ROWS * SIZE];
} State;
typedef struct {
    State first, last, whole; /* first, last: parts of blocks that other threads work on too */
    uint32_t query[ROWS * SIZE], key[SIZE * KEYS], value[KEYS * SIZE + LANES], weight[ROWS * KEYS];
    float score[ROWS * KEYS];
} Scratch;
static const uint32_t NOTHING[SIZE];

int64_t grape_scratch_bytes(void) { return sizeof(Scratch); }

/* bf16 is a constant wherever it is an argument: each type gets code of its own. */
#define IS_DOT (DOT && bf16)
#define IS_WIDENED (!DOT && bf16)

/* Where the rows of a tile's keys are in a pool; behind its end are zeros. The next tile's are fetched ahead. */
static void locate(const Call *call, const Block *block, const char *pool, int64_t first, const char *rows[KEYS]) {
    const Step *step = call->step;
    const int64_t bytes = step->size * (step->bf16 ? 2 : 4), slot = bytes * step->kv_heads;
    const int32_t *slots = block->sequence->slots + first;
    const int64_t left = block->context - first, count = left < KEYS ? left : KEYS;
    pool += block->head * bytes;
    for (int64_t i = 0; i < count; i++) rows[i] = pool + slots[i] * slot;
    for (int64_t i = count; i < KEYS; i++) rows[i] = (const char *)NOTHING;
    for (int64_t i = KEYS; i < 2 * KEYS && i < left; i++)
        for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(pool + slots[i] * slot + at, 0, 2);
}
/* x = words k... of LANES keys, transposed; words behind a key's end are zeros. */
INLINE void take_keys(const int bf16, const char **rows, int64_t k, int64_t words, u32 x[LANES]) {
    EACH(j, LANES) {
        if (IS_WIDENED) {
            x[j] = (u32)widened(rows[j] + 2 * k);
        } else if (words - k >= LANES) {
            x[j] = *(const u32 *)(rows[j] + 4 * k);
        } else {
            x[j] = (u32){0};
            memcpy(&x[j], rows[j] + 4 * k, 4 * LANES / 2);
        }
    }
    transpose(x);
}
/* x = words of some vectors of elements from k on: of the values of two keys with DOT, else of one. */
INLINE void take_values(const int bf16, const int vectors, const char **rows, int64_t k, u32 *x) {
#if DOT
    if (bf16) {
        const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                                             6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
        const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
        const __mmask32 there = vectors == 1 ? 0xffff : 0xffffffff;
        UNROLL for (int v = 0; v < vectors; v += 2) {
            const __m512i a = _mm512_maskz_loadu_epi16(there, rows[0] + 2 * (k + v * LANES));
            const __m512i b = _mm512_maskz_loadu_epi16(there, rows[1] + 2 * (k + v * LANES));
            x[v] = (u32)_mm512_permutex2var_epi16(a, low, b);
            if (vectors > 1) x[v + 1] = (u32)_mm512_permutex2var_epi16(a, high, b);
        }
        return;
    }
#endif
    EACH(v, vectors) {
        const int64_t at = k + v * LANES;
        x[v] = IS_WIDENED ? (u32)widened(rows[0] + 2 * at) : *(const u32 *)(rows[0] + 4 * at);
    }
}

/* score = query * keys, without keys in memory */
INLINE void score_few(const int bf16, const int rows, const char **at, int64_t keys, int64_t words,
                      const uint32_t *query, int64_t stride, float *score) {
    for (int64_t i = 0; i < keys; i += LANES) {
        f32 sum[2][FEW];
        EACH(r, rows) sum[0][r] = sum[1][r] = splat(0);
        for (int64_t k = 0; k < words; k += LANES) {
            u32 x[LANES];
            take_keys(bf16, at + i, k, words, x);
            EACH(j, LANES) EACH(r, rows) {
                sum[j & 1][r] = add_product(IS_DOT, sum[j & 1][r], query[r * stride + k + j], x[j]);
            }
        }
        EACH(r, rows) *(f32 *)(score + r * KEYS + i) = sum[0][r] + sum[1][r];
    }
}
INLINE void mix_part(const int bf16, const int rows, const int vectors, const char **at, int64_t keys, int64_t k,
                     const uint32_t *weight, float *mixed, int64_t size) {
    const int step = IS_DOT ? 2 : 1;
    f32 sum[FEW][VECTORS];
    EACH(r, rows) EACH(v, vectors) sum[r][v] = *(f32 *)(mixed + r * size + k + v * LANES);
    for (int64_t i = 0; i < keys; i += step) {
        u32 x[VECTORS];
        take_values(bf16, vectors, at + i, k, x);
        EACH(r, rows) {
            const uint32_t word = weight[r * KEYS + i / step];
            EACH(v, vectors) sum[r][v] = add_product(IS_DOT, sum[r][v], word, x[v]);
        }
    }
    EACH(r, rows) EACH(v, vectors) *(f32 *)(mixed + r * size + k + v * LANES) = sum[r][v];
}
/* mixed += weight * values, without values in memory */
INLINE void mix_few(const int bf16, const int rows, const char **at, int64_t keys, const uint32_t *weight,
                    float *mixed, int64_t size) {
    int64_t k = 0;
    for (; size - k >= VECTORS * LANES; k += VECTORS * LANES)
        mix_part(bf16, rows, VECTORS, at, keys, k, weight, mixed, size);
#if WIDE
    for (; size - k >= 2 * LANES; k += 2 * LANES) mix_part(bf16, rows, 2, at, keys, k, weight, mixed, size);
#endif
    for (; size - k >= LANES; k += LANES) mix_part(bf16, rows, 1, at, keys, k, weight, mixed, size);
}
/* Rows that are computed for nobody stay within their buffers. */
#define FOR_FEW(rows, CALL) \
    switch (rows) { \
    case 1: CALL(1); break; \
    case 2: CALL(2); break; \
    case 3: CALL(3); break; \
    case 4: CALL(4); break; \
    default: CALL(6); \
    }

/* A row's scores of one tile to weights; returns what its earlier weights are to be multiplied by.
   visible: how many of the tile's keys the row may see. */
INLINE float soften(const int bf16, const float *score, int64_t visible, int64_t keys, float factor, float *highest,
                    float *total, uint32_t *weight) {
    const f32 lowest = splat(LOWEST);
    i32 lane;
    f32 x[KEYS / LANES], most = lowest, sum = *(f32 *)total;
    float shrink = 1;
    EACH(i, LANES) lane[i] = i;
    if (visible <= 0) {
        memset(weight, 0, keys * (IS_DOT ? 2 : 4));
        return 1;
    }
    for (int v = 0; v * LANES < keys; v++) {
        x[v] = *(const f32 *)(score + v * LANES) * factor;
        if (visible < (v + 1) * LANES) x[v] = pick(lane < (int32_t)visible - v * LANES, x[v], lowest);
        most = higher(most, x[v]);
    }
    const float top = highest_lane(most);
    if (top > *highest) {
        shrink = power(splat(*highest - top))[0];
        sum *= shrink;
        *highest = top;
    }
    for (int v = 0; v * LANES < keys; v++) {
        const f32 y = power(x[v] - *highest);
        sum += y;
        if (IS_DOT)
            *(u16 *)((uint16_t *)weight + v * LANES) = narrow(y);
        else
            *(f32 *)(weight + v * LANES) = y;
    }
    *(f32 *)total = sum;
    return shrink;
}

static void product_of(const int dot, int64_t rows, int64_t columns, int64_t depth, const uint32_t *a,
                       int64_t a_stride, const uint32_t *b, int64_t b_stride, float *c, int64_t c_stride, int add) {
    if (dot)
        product(DOT, rows, columns, depth, a, a_stride, b, b_stride, c, c_stride, add);
    else
        product(0, rows, columns, depth, a, a_stride, b, b_stride, c, c_stride, add);
}
/* Tiles from..to of a block into its state. */
INLINE void attend(const int bf16, const Call *call, const Block *block, int64_t from, int64_t to, Scratch *s,
                   State *state) {
    const Step *step = call->step;
    const int64_t size = step->size, group = step->heads / step->kv_heads, rows = block->rows;
    const int64_t words = IS_DOT ? size / 2 : size, stride = (words + LANES - 1) / LANES * LANES;
    const int64_t bytes = size * (bf16 ? 2 : 4);
    const char *at[KEYS];
    state->block = *block;
    state->used = 1;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = block->first + r, token = block->sequence->start + row / group;
        const char *query = call->query + token * call->query_stride + (block->head * group + row % group) * bytes;
        uint32_t *into = s->query + r * stride;
        memset(into + stride - LANES, 0, 4 * LANES);
        for (int64_t k = 0; k < size && IS_WIDENED; k += LANES) *(f32 *)(into + k) = widened(query + 2 * k);
        if (!IS_WIDENED) memcpy(into, query, bytes);
        state->highest[r] = LOWEST;
    }
    memset(state->total, 0, rows * LANES * 4);
    memset(state->mixed, 0, rows * size * 4);
    for (int64_t first = from * KEYS; first < to * KEYS; first += KEYS) {
        const int64_t left = block->context - first;
        const int64_t keys = left < KEYS ? (left + LANES - 1) / LANES * LANES : KEYS;
        locate(call, block, call->keys, first, at);
        if (rows <= FEW) {
#define SCORE(R) score_few(bf16, R, at, keys, words, s->query, stride, s->score)
            FOR_FEW(rows, SCORE)
        } else {
            for (int64_t i = 0; i < keys; i += LANES)
                for (int64_t k = 0; k < words; k += LANES) {
                    u32 x[LANES];
                    take_keys(bf16, at + i, k, words, x);
                    EACH(j, LANES) *(u32 *)(s->key + (k + j) * KEYS + i) = x[j];
                }
            product_of(IS_DOT, rows, keys, words, s->query, stride, s->key, KEYS, s->score, KEYS, 0);
        }
        for (int64_t r = 0; r < rows; r++) {
            const int64_t visible = block->sequence->prefix + (block->first + r) / group + 1 - first;
            const float shrink = soften(bf16, s->score + r * KEYS, visible, keys, call->scaling * LOG2_E,
                                        state->highest + r, state->total + r * LANES, s->weight + r * KEYS);
            for (int64_t k = 0; k < size && shrink != 1; k += LANES) *(f32 *)(state->mixed + r * size + k) *= shrink;
        }
        locate(call, block, call->values, first, at);
        if (rows <= FEW) {
#define MIX(R) mix_few(bf16, R, at, keys, s->weight, state->mixed, size)
            FOR_FEW(rows, MIX)
        } else {
            const int64_t depth = IS_DOT ? keys / 2 : keys;
            for (int64_t i = 0; i < depth; i++)
                for (int64_t k = 0; k < size; k += 2 * LANES) {
                    u32 x[2] = {0};
                    if (size - k >= 2 * LANES)
                        take_values(bf16, 2, at + (IS_DOT ? 2 * i : i), k, x);
                    else
                        take_values(bf16, 1, at + (IS_DOT ? 2 * i : i), k, x);
                    EACH(v, 2) *(u32 *)(s->value + i * size + k + v * LANES) = x[v];
                }
            product_of(IS_DOT, rows, size, depth, s->weight, KEYS, s->value, size, state->mixed, size, 1);
        }
    }
}
static void attend_bf16(const Call *call, const Block *block, int64_t from, int64_t to, Scratch *s, State *state) {
    attend(1, call, block, from, to, s, state);
}
static void attend_f32(const Call *call, const Block *block, int64_t from, int64_t to, Scratch *s, State *state) {
    attend(0, call, block, from, to, s, state);
}
/* Take a later part of the same block in. */
static void join(State *state, const State *part, int64_t size) {
    for (int64_t r = 0; r < part->block.rows; r++) {
        const float top = state->highest[r] > part->highest[r] ? state->highest[r] : part->highest[r];
        const float mine = power(splat(state->highest[r] - top))[0], its = power(splat(part->highest[r] - top))[0];
        state->highest[r] = top;
        for (int64_t i = r * LANES; i < (r + 1) * LANES; i++)
            state->total[i] = state->total[i] * mine + part->total[i] * its;
        for (int64_t i = r * size; i < (r + 1) * size; i++)
            state->mixed[i] = state->mixed[i] * mine + part->mixed[i] * its;
    }
}
static void finish(const Call *call, const State *state) {
    const Step *step = call->step;
    const int64_t size = step->size, group = step->heads / step->kv_heads;
    for (int64_t r = 0; r < state->block.rows; r++) {
        const int64_t row = state->block.first + r, token = state->block.sequence->start + row / group;
        const int64_t place = (token * step->heads + state->block.head * group + row % group) * size;
        const float share = 1 / sum_lanes(*(const f32 *)(state->total + r * LANES));
        for (int64_t k = 0; k < size; k += LANES) {
            const f32 x = *(const f32 *)(state->mixed + r * size + k) * share;
            if (step->bf16)
                *(u16 *)(call->output + 2 * (place + k)) = narrow(x);
            else
                *(f32 *)(call->output + 4 * (place + k)) = x;
        }
    }
}

/* Step through all blocks of a call; returns 0 behind the last. Start with a zeroed block. */
static int next(const Step *step, Block *b) {
    const Sequence *end = step->sequences + step->count;
    const int64_t group = step->heads / step->kv_heads;
    if (!b->sequence)
        b->sequence = step->sequences;
    else if (++b->head == step->kv_heads) {
        b->head = 0;
        b->first += b->rows;
    }
    while (b->sequence < end && b->first >= b->sequence->length * group) {
        b->sequence++;
        b->first = 0;
    }
    if (b->sequence == end) return 0;
    const int64_t left = b->sequence->length * group - b->first;
    b->rows = left < ROWS ? left : ROWS;
    b->context = b->sequence->prefix + (b->first + b->rows - 1) / group + 1;
    b->tiles = (b->context + KEYS - 1) / KEYS;
    return 1;
}
/* One share: the tiles that begin within its part of the whole cost. */
static void work_share(const Call *call, int64_t share) {
    const Step *step = call->step;
    Scratch *s = (Scratch *)step->scratch + share;
    int64_t whole = 0, cost = 0;
    Block b = {0};
    s->first.used = s->last.used = 0;
    while (next(step, &b)) whole += b.tiles * (b.rows + PACKING);
    const int64_t low = whole * share / step->threads, high = whole * (share + 1) / step->threads;
    for (b = (Block){0}; cost < high && next(step, &b);) {
        const int64_t each = b.rows + PACKING;
        int64_t from = (low - cost + each - 1) / each, to = (high - cost + each - 1) / each;
        from = from < 0 || low < cost ? 0 : from;
        to = to < b.tiles ? to : b.tiles;
        if (from < to) {
            State *state = from ? &s->first : to < b.tiles ? &s->last : &s->whole;
            (step->bf16 ? attend_bf16 : attend_f32)(call, &b, from, to, s, state);
            if (state == &s->whole) finish(call, state);
        }
        cost += each * b.tiles;
    }
}
static void work(void *data) {
    const Step *step = ((const Call *)data)->step;
    /* The team may be smaller than asked for. */
    for (int64_t share = step->thread(); share < step->threads; share += step->team()) work_share(data, share);
}
/* query: [tokens, heads, size] with a stride in bytes from token to token; output: the same, contiguous;
   keys, values: [slots, kv heads, size], contiguous. */
void grape_attend(const Step *step, const void *query, int64_t query_stride, void *output, const void *keys,
                  const void *values, float scaling) {
    Call call = {step, query, keys, values, output, query_stride, scaling};
    State *whole = 0;
    step->parallel(work, &call, (unsigned)step->threads, 0);
    for (int64_t thread = 0; thread < step->threads; thread++) {
        Scratch *s = (Scratch *)step->scratch + thread;
        for (State *part = &s->first; part <= &s->last; part++) {
            if (!part->used) continue;
            const int same = whole && whole->block.sequence == part->block.sequence &&
                             whole->block.head == part->block.head && whole->block.first == part->block.first;
            if (same) {
                join(whole, part, step->size);
                continue;
            }
            if (whole) finish(&call, whole);
            whole = part;
        }
    }
    if (whole) finish(&call, whole);
}
