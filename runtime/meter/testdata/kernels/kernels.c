// Kernels whose time with and without metering is compared (P3). Each takes a
// size and gives a checksum. Built by the tests:
//   clang --target=wasm32 -O2 -msimd128 -mbulk-memory -nostdlib -Wl,--no-entry -o kernels.wasm kernels.c
#include <stdint.h>
#include <wasm_simd128.h>

#define EXPORT(name) __attribute__((export_name(#name))) uint64_t name(uint32_t n)

static uint8_t bytes[1 << 20];
static uint32_t words[1 << 18];
static float floats[3][1 << 16];
static double square[3][96][96];

// scalar: integers
EXPORT(xorshift) {
  uint64_t x = 88172645463325252ull, sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    sum += x >> 60;
  }
  return sum;
}

// scalar: branches that are hard to foresee
EXPORT(collatz) {
  uint64_t steps = 0;
  for (uint32_t i = 1; i <= n; i++)
    for (uint64_t x = i; x != 1; steps++) x = x & 1 ? 3 * x + 1 : x >> 1;
  return steps;
}

// scalar: floating point
EXPORT(mandelbrot) {
  uint64_t sum = 0;
  for (uint32_t py = 0; py < n; py++)
    for (uint32_t px = 0; px < n; px++) {
      double cx = px * 3.0 / n - 2, cy = py * 2.0 / n - 1, x = 0, y = 0;
      uint32_t i = 0;
      for (; i < 100 && x * x + y * y < 4; i++) {
        double t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
      }
      sum += i;
    }
  return sum;
}

// memory: strides
EXPORT(sieve) {
  uint64_t primes = 0;
  if (n > sizeof bytes) n = sizeof bytes;
  __builtin_memset(bytes, 1, n);
  for (uint32_t i = 2; i < n; i++) {
    if (!bytes[i]) continue;
    primes++;
    for (uint64_t j = (uint64_t)i * i; j < n; j += i) bytes[j] = 0;
  }
  return primes;
}

// memory: three nested loops
EXPORT(matmul) {
  const int size = 96;
  for (int i = 0; i < size; i++)
    for (int j = 0; j < size; j++) square[0][i][j] = i + j, square[1][i][j] = i - j;
  double sum = 0;
  for (uint32_t r = 0; r < n; r++) {
    for (int i = 0; i < size; i++)
      for (int j = 0; j < size; j++) {
        double s = r;
        for (int k = 0; k < size; k++) s += square[0][i][k] * square[1][k][j];
        square[2][i][j] = s;
      }
    sum += square[2][r % size][(r * 7) % size];
  }
  return (uint64_t)(int64_t)sum;
}

// memory: a table lookup for each byte
EXPORT(crc32) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    words[i] = c;
  }
  uint32_t crc = ~0u;
  for (uint32_t i = 0; i < n; i++) crc = words[(crc ^ (i * 31)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

// memory and recursion: quicksort
static void sort(uint32_t *a, int32_t low, int32_t high) {
  while (low < high) {
    uint32_t pivot = a[(low + high) / 2];
    int32_t i = low, j = high;
    while (i <= j) {
      while (a[i] < pivot) i++;
      while (a[j] > pivot) j--;
      if (i <= j) {
        uint32_t t = a[i];
        a[i++] = a[j];
        a[j--] = t;
      }
    }
    sort(a, low, j);
    low = i;
  }
}

EXPORT(quicksort) {
  if (n > 1 << 18) n = 1 << 18;
  uint32_t x = 12345;
  for (uint32_t i = 0; i < n; i++) words[i] = x = x * 1664525 + 1013904223;
  sort(words, 0, (int32_t)n - 1);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum = sum * 31 + words[i];
  return sum;
}

// recursion: nothing but calls
__attribute__((noinline)) static uint64_t fib(uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

EXPORT(fibonacci) { return fib(n); }

// recursion: search
__attribute__((noinline)) static uint64_t place(uint32_t all, uint32_t columns, uint32_t left, uint32_t right) {
  if (columns == all) return 1;
  uint64_t found = 0;
  for (uint32_t free = all & ~(columns | left | right); free;) {
    uint32_t bit = free & -free;
    free ^= bit;
    found += place(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return found;
}

EXPORT(queens) { return place((1u << n) - 1, 0, 0, 0); }

// SIMD: floats
EXPORT(saxpy) {
  for (int i = 0; i < 1 << 16; i++) floats[0][i] = i, floats[1][i] = 1;
  for (uint32_t r = 0; r < n; r++) {
    v128_t a = wasm_f32x4_splat(1.0f / (r + 1));
    for (int i = 0; i < 1 << 16; i += 4) {
      v128_t x = wasm_v128_load(&floats[0][i]), y = wasm_v128_load(&floats[1][i]);
      wasm_v128_store(&floats[1][i], wasm_f32x4_add(wasm_f32x4_mul(a, x), y));
    }
  }
  return (uint64_t)floats[1][1000];
}

// SIMD: bytes, the count of one value
EXPORT(count) {
  for (uint32_t i = 0; i < sizeof bytes; i++) bytes[i] = i * 7 >> 3;
  uint64_t found = 0;
  for (uint32_t r = 0; r < n; r++) {
    v128_t want = wasm_i8x16_splat((int8_t)r);
    for (uint32_t i = 0; i < sizeof bytes; i += 16)
      found += __builtin_popcount(wasm_i8x16_bitmask(wasm_i8x16_eq(wasm_v128_load(&bytes[i]), want)));
  }
  return found;
}

// bulk instructions of many lengths
EXPORT(copies) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t length = (i * 37) & 255;
    __builtin_memmove(&bytes[(i & 1023) + 4096], &bytes[i & 1023], length);
    sum += bytes[4096 + (i & 1023)];
  }
  return sum;
}
