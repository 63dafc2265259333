/* A guest in plain C, without a standard library: the part of the conformance
 * module (abi/conformance/README.md) that needs no strings.
 *
 *   clang --target=wasm32 -O2 -nostdlib -mbulk-memory -I abi \
 *     -Wl,--no-entry -o conformance.wasm conformance.c
 */
#include "weir_v1.h"
#include "ipc.h"

extern u8 __heap_base;

static const char manifest[] =
    "{\"abi\": 1, \"module\": \"conformance_c\", \"version\": \"1.0.0\", \"functions\": ["
    "{\"name\": \"copy\", \"kind\": \"map\", \"inputs\": [{\"dataset\": \"a\", \"mode\": \"stream\"}]},"
    "{\"name\": \"double\", \"kind\": \"map\", \"inputs\": [{\"dataset\": \"a\", \"mode\": \"stream\", \"columns\": [\"v\"]}],"
    " \"row_aligned\": true, \"passthrough\": {\"id\": \"key\"}, \"output\": [{\"name\": \"doubled\", \"type\": \"bigint\"}]},"
    "{\"name\": \"positive\", \"kind\": \"map\", \"inputs\": [{\"dataset\": \"a\", \"mode\": \"stream\", \"columns\": [\"v\"]}],"
    " \"output\": [{\"name\": \"v\", \"type\": \"bigint\"}]},"
    "{\"name\": \"broken\", \"kind\": \"map\", \"inputs\": [{\"dataset\": \"a\", \"mode\": \"stream\"}], \"output\": []},"
    "{\"name\": \"next\", \"kind\": \"snapshot\", \"inputs\": [{\"dataset\": \"b\", \"mode\": \"batch\", \"columns\": [\"v\"]}],"
    " \"output\": [{\"name\": \"v\", \"type\": \"bigint\"}], \"version\": \"int\"}]}";

WEIR_EXPORT(weir_describe) int32_t weir_describe(void) { return weir_result_write(manifest, sizeof manifest - 1); }

/* Memory: the message read lies at the heap's base, the one written behind it. */
static u8 *aligned(u8 *p) { return (u8 *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

static int reserve(const u8 *end) {
  u32 have = __builtin_wasm_memory_size(0) << 16, want = (u32)(uintptr_t)end;
  if (want <= have) return 1;
  return __builtin_wasm_memory_grow(0, (want - have + 65535) >> 16) != (unsigned long)-1;
}

static int fail(const char *text) {
  u32 n = 0;
  while (text[n]) n++;
  weir_fail(text, n);
  return 1;
}

/* next reads the next message of input 0: its size, 0 at the end, below 0 on failure. */
static i64 next(u8 *in) {
  i64 size = weir_input_next(0);
  if (size <= 0) return size;
  if (!reserve(in + size)) return -1;
  return weir_input_read(0, in, (u32)size);
}

static int copy(void) {
  u8 *in = aligned(&__heap_base);
  i64 size;
  while ((size = next(in)) > 0) weir_output_write(0, in, (u32)size);
  return size < 0 ? fail("input 0 failed") : 0;
}

static i64 twice(i64 v) { return (i64)((u64)v * 2); }

static int map_bigint(const char *name, int keep_rows) {
  u8 *in = aligned(&__heap_base);
  i64 size, row = 0;
  while ((size = next(in)) > 0) {
    struct batch b;
    u8 *out = aligned(in + size);
    if (!reserve(out + 1024)) return fail("out of memory");
    if (!read_message(in, &b)) {
      weir_output_write(0, out, write_schema(out, &name, 1));
      continue;
    }
    if (!reserve(out + 1024 + 9 * b.rows)) return fail("out of memory");
    const u8 *valid = null_count(&b, 0) ? buffer(&b, 0) : 0;
    const u8 *values = buffer(&b, 1);
    i64 rows = 0, nulls = 0;
    for (i64 i = 0; i < b.rows; i++) {
      int ok = !valid || is_valid(valid, i);
      nulls += !ok;
      rows += ok && get64(values + 8 * i) > 0;
    }
    if (keep_rows) rows = b.rows;
    else nulls = 0;
    u32 written;
    u8 *bits = begin_batch(out, rows, &nulls, 1, &written);
    u8 *to = bits + (rows + 63) / 64 * 8;
    __builtin_memset(bits, 0, (u32)(to - bits));
    for (i64 i = 0, o = 0; i < b.rows; i++) {
      int ok = !valid || is_valid(valid, i);
      i64 v = ok ? get64(values + 8 * i) : 0;
      if (!keep_rows && ok && v < 0) {
        static const char why[] = "{\"code\": \"NEGATIVE\", \"message\": \"v is below zero\"}";
        weir_row_error(0, row + i, why, sizeof why - 1);
      }
      if (!keep_rows && v <= 0) continue;
      put64(to + 8 * o, keep_rows ? twice(v) : v);
      if (ok) bits[o >> 3] |= (u8)(1 << (o & 7));
      o++;
    }
    row += b.rows;
    weir_output_write(0, out, written);
  }
  return size < 0 ? fail("input 0 failed") : 0;
}

/* latest gives the latest version, a whole number of one digit, or 0. */
static i64 latest(void) {
  static const char key[] = "\"latest_version\":{\"type\":\"int\",\"value\":";
  u8 *text = aligned(&__heap_base);
  int32_t n = weir_context_read((char *)text, 0);
  if (n < 0 || !reserve(text + n) || weir_context_read((char *)text, (u32)n) != n) return -1;
  const int32_t size = sizeof key - 1;
  for (int32_t i = 0; i + size < n; i++) {
    int32_t same = 0;
    while (same < size && text[i + same] == (u8)key[same]) same++;
    if (same == size) return text[i + size] - '0';
  }
  return 0;
}

static int next_snapshot(void) {
  static const char done[] = "{\"done\": true}";
  char version[] = "{\"version\": {\"type\": \"int\", \"value\": 0}}";
  i64 after = latest();
  if (after < 0) return fail("the context cannot be read");
  if (after >= 3) return weir_result_write(done, sizeof done - 1) ? fail("result_write failed") : 0;
  version[sizeof version - 4] = (char)('1' + after);
  if (weir_result_write(version, sizeof version - 1)) return fail("result_write failed");
  return map_bigint("v", 0);
}

WEIR_EXPORT(weir_call) int32_t weir_call(int32_t function) {
  switch (function) {
  case 0: return copy();
  case 1: return map_bigint("doubled", 1);
  case 2: return map_bigint("v", 0);
  case 3: return fail("broken as asked");
  case 4: return next_snapshot();
  }
  return fail("no such function");
}
