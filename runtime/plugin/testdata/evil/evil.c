/* Guests that mean harm, each a function of one module. What the host must
 * make of each stands in evil_test.go.
 *
 *   clang --target=wasm32 -O1 -fno-builtin -nostdlib -mbulk-memory -I abi -I testdata/c \
 *     -Wl,--no-entry -o evil.wasm evil.c
 */
#include "weir_v1.h"
#include "ipc.h"

extern u8 __heap_base;

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))
WASI(poll_oneoff) int32_t wasi_poll(const void *in, void *out, u32 n, u32 *ready);
WASI(clock_time_get) int32_t wasi_clock(u32 id, u64 precision, u64 *time);
WASI(random_get) int32_t wasi_random(void *p, u32 n);
WASI(fd_write) int32_t wasi_write(u32 fd, const void *vectors, u32 n, u32 *written);
WASI(fd_prestat_get) int32_t wasi_prestat(u32 fd, void *out);
WASI(environ_sizes_get) int32_t wasi_environ(u32 *count, u32 *bytes);
WASI(args_sizes_get) int32_t wasi_args(u32 *count, u32 *bytes);
WASI(path_open) int32_t wasi_open(u32 fd, u32 flags, const char *path, u32 len, u32 oflags, u64 base, u64 inherit, u32 fdflags, u32 *out);
WASI(sock_accept) int32_t wasi_accept(u32 fd, u32 flags, u32 *out);
WASI(proc_exit) void wasi_exit(u32 code);

#define STREAM "\"kind\": \"map\", \"inputs\": [{\"dataset\": \"a\", \"mode\": \"stream\", \"columns\": [\"v\"]}], \"output\": [{\"name\": \"v\", \"type\": \"bigint\"}]"
#define PLAIN(name) "{\"name\": \"" #name "\", " STREAM "},"
#define ALIGNED(name) "{\"name\": \"" #name "\", " STREAM ", \"row_aligned\": true},"

#define EVILS(plain, aligned)                                                                                          \
  plain(spin) plain(recurse) plain(exponential) plain(deep_spin) plain(fill) plain(copy) plain(memory_bomb)           \
  plain(trap_after_output) plain(output_longer_than_memory) plain(pointer_past_the_end) plain(negative_length)       \
  plain(negative_read) aligned(more_rows) aligned(fewer_rows) aligned(rows_ahead) plain(another_schema)              \
  plain(no_schema) plain(huge_row_count) plain(negative_row_count) plain(null_count_lie) plain(buffer_outside)       \
  plain(endless_output) plain(zero_rows) plain(zero_columns) plain(log_flood) plain(metric_flood) plain(row_errors)  \
  plain(one_row_error) plain(row_error_text) plain(state_flood) plain(many_inputs) plain(not_granted) plain(sleep)   \
  plain(clock) plain(random_flood) plain(write_flood) plain(read_flood) plain(outside_world) plain(leave)            \
  plain(fail_flood) plain(exports_of_the_host)

static const char manifest[] = "{\"abi\": 1, \"module\": \"evil\", \"functions\": [" EVILS(PLAIN, ALIGNED) PLAIN(honest)
    "{\"name\": \"last\", " STREAM "}]}";

WEIR_EXPORT(weir_describe) int32_t weir_describe(void) { return weir_result_write(manifest, sizeof manifest - 1); }

static u8 *heap(void) { return (u8 *)(((uintptr_t)&__heap_base + 63) & ~(uintptr_t)63); }
static u8 *at(u32 n) { return (u8 *)(uintptr_t)n; }
static u32 memory(void) { return (u32)__builtin_wasm_memory_size(0) << 16; }
static void grow_all(void) { while (__builtin_wasm_memory_grow(0, 16) != (unsigned long)-1) {} }

/* number writes n in decimals and gives the place behind it. */
static char *number(char *to, u64 n) {
  char digits[20];
  int k = 0;
  do digits[k++] = (char)('0' + n % 10); while (n /= 10);
  while (k) *to++ = digits[--k];
  return to;
}

static char *text(char *to, const char *s) { while (*s) *to++ = *s++; return to; }

/* say fails with a text and a number: how a guest tells the test what it saw. */
static int say(const char *what, u64 n) {
  char b[256], *end = number(text(b, what), n);
  weir_fail(b, (u32)(end - b));
  return 1;
}

/* take reads the next message of input 0: the rows of a batch, -1 of a schema, -2 at the end. */
static i64 take(void) {
  i64 size = weir_input_next(0);
  if (size <= 0) return -2;
  while (heap() + 2 * size + 65536 > at(memory())) if (__builtin_wasm_memory_grow(0, 1) == (unsigned long)-1) return -2;
  weir_input_read(0, heap(), (u32)size);
  struct batch b;
  return read_message(heap(), &b) ? b.rows : -1;
}

static u8 *out(void) { return at(memory()) - 65536; }

static void schema(void) {
  const char *name = "v";
  weir_output_write(0, out(), write_schema(out(), &name, 1));
}

/* batch writes n rows of zero; tamper may spoil the message first. */
static void batch(i64 n, void (*tamper)(u8 *message)) {
  i64 nulls = 0;
  u32 size;
  u8 *body = begin_batch(out(), n, &nulls, 1, &size);
  for (u8 *p = body; p < out() + size; p++) *p = 0xff;
  if (tamper) tamper(out());
  weir_output_write(0, out(), size);
}

static int finish_input(void) { while (take() != -2) {} return 0; }

volatile u32 sink;

static int spin(void) { for (;;) sink++; }

__attribute__((noinline)) static u32 down(u32 n) { return n == 0 ? 1 : down(n - 1) + sink; }
static int recurse(void) { return (int)down(0xffffffff); }

__attribute__((noinline)) static u32 twice(u32 n) { return n == 0 ? sink : twice(n - 1) + twice(n - 1); }
static int exponential(void) { return (int)twice(64); }

__attribute__((noinline)) static u32 deep(u32 n) { if (n == 0) for (;;) sink++; return deep(n - 1) + sink; }
static int deep_spin(void) { return (int)deep(1000000); }

static int fill(void) { grow_all(); for (u8 c = 0;; c++) __builtin_memset(heap(), c, memory() - (u32)(uintptr_t)heap()); }
static int copy(void) {
  grow_all();
  u32 n = memory() - (u32)(uintptr_t)heap() - 64;
  for (;;) __builtin_memmove(heap() + 64, heap(), n);
}
static int memory_bomb(void) {
  u32 touched = 0;
  for (;;) {
    for (; touched < memory(); touched += 4096) if (touched > (u32)(uintptr_t)heap()) *(volatile u8 *)at(touched) = 1;
    if (__builtin_wasm_memory_grow(0, 1) == (unsigned long)-1) __builtin_trap();
  }
}

static int trap_after_output(void) { take(), take(), schema(), batch(3, 0); __builtin_trap(); }
static int output_longer_than_memory(void) { return weir_output_write(0, (void *)0, memory() + 1); }
static int pointer_past_the_end(void) { return weir_output_write(0, at(0xffffff00u), 512); }
static int negative_length(void) { weir_log(1, heap(), (u32)-1); return 0; }
static int negative_read(void) { weir_input_next(0); return weir_input_read(0, at(0xfffffff0u), (u32)-5); }

static int more_rows(void) { take(); i64 n = take(); schema(), batch(n + 1, 0); return finish_input(); }
static int fewer_rows(void) { take(); i64 n = take(); schema(), batch(n - 1, 0); return finish_input(); }
static int rows_ahead(void) { take(), schema(), batch(1, 0); return finish_input(); }
static int another_schema(void) {
  const char *names[] = {"v", "w"};
  finish_input();
  weir_output_write(0, out(), write_schema(out(), names, 2));
  return 0;
}
static int no_schema(void) { finish_input(), batch(1, 0); return 0; }

static void many(u8 *m) { put64(m + 8 + 56, (i64)1 << 40), put64(m + 8 + 80, (i64)1 << 40); }
static void negative(u8 *m) { put64(m + 8 + 56, -1), put64(m + 8 + 80, -1); }
static void nulls(u8 *m) { put64(m + 8 + 88, 2); }
static void outside(u8 *m) { put64(m + 8 + 80 + 16 + 4 + 16, (i64)1 << 50); }
static int tampered(void (*how)(u8 *)) { finish_input(), schema(), batch(4, how); return 0; }
static int huge_row_count(void) { return tampered(many); }
static int negative_row_count(void) { return tampered(negative); }
static int null_count_lie(void) { return tampered(nulls); }
static int buffer_outside(void) { return tampered(outside); }

static int endless_output(void) { finish_input(), schema(); for (;;) batch(1000, 0); }
static int zero_rows(void) { finish_input(), schema(); for (;;) batch(0, 0); }
static int zero_columns(void) { finish_input(); weir_output_write(0, out(), write_schema(out(), 0, 0)); return 0; }

static int log_flood(void) { for (;;) weir_log(2, heap(), 4096); }
static int metric_flood(void) { for (u64 i = 0;; i++) { char b[24]; weir_metric_add(b, (u32)(number(b, i) - b), 1); } }
static int row_errors(void) {
  static const char e[] = "{\"code\": \"BAD\", \"message\": \"no\"}";
  take();
  for (i64 n = take(), i = 0; i < n; i++) weir_row_error(0, i, e, sizeof e - 1);
  return finish_input();
}
static int one_row_error(void) {
  static const char e[] = "{\"code\": \"BAD\", \"message\": \"again\"}";
  take(), take();
  for (;;) weir_row_error(0, 0, e, sizeof e - 1);
}
static int row_error_text(void) { take(), take(), grow_all(); weir_row_error(0, 0, heap(), memory() - (u32)(uintptr_t)heap()); return 0; }
static int state_flood(void) { grow_all(); for (;;) weir_state_write(heap(), memory() - (u32)(uintptr_t)heap()); }

static int many_inputs(void) {
  static const char q[] = "{\"sql\": \"SELECT * FROM a\"}";
  u64 open = 0;
  for (u32 i = 1; i <= 1000; i++) open += weir_input_next(i) >= 0, open += weir_query(q, sizeof q - 1) >= 0;
  return say("opened ", open);
}

static int not_granted(void) {
  static const char q[] = "{\"sql\": \"SELECT * FROM secret\"}", key[] = "canary.secret";
  u64 seen = 0;
  seen += weir_input_next(1) >= 0;
  seen += weir_input_next(0xffffffff) >= 0;
  seen += weir_query(q, sizeof q - 1) >= 0;
  seen += weir_conf_get(key, sizeof key - 1, heap(), 64) >= 0;
  /* the stream itself has a column that was not declared */
  take(), take();
  struct batch b;
  read_message(heap(), &b);
  for (const u8 *p = b.body; p < heap() + 8192; p++) seen += p[0] == 'C' && p[1] == 'A' && p[2] == 'N' && p[3] == 'A' && p[4] == 'R' && p[5] == 'Y';
  return say("saw ", seen);
}

static int sleep(void) {
  u8 sub[48] = {0}, event[32];
  u32 ready;
  put32(sub + 16, 1), put64(sub + 24, 3600000000000ll); /* an hour of the monotonic clock */
  for (int i = 0; i < 24; i++) wasi_poll(sub, event, 1, &ready);
  u64 t;
  wasi_clock(1, 0, &t);
  return say("slept hours: ", t / 3600000000000ull);
}

static int clock(void) {
  u64 first, later, mono0, mono1;
  wasi_clock(0, 0, &first), wasi_clock(1, 0, &mono0);
  for (u32 i = 0; i < 3000000; i++) sink++;
  wasi_clock(0, 0, &later), wasi_clock(1, 0, &mono1);
  return say("time seen to pass: ", later - first + (mono1 - mono0));
}

static int random_flood(void) { grow_all(); for (;;) wasi_random(heap(), memory() - (u32)(uintptr_t)heap()); }
static int write_flood(void) {
  grow_all();
  u32 *v = (u32 *)heap(), written;
  for (u32 i = 0; i < 1024; i++) v[2 * i] = 0, v[2 * i + 1] = memory();
  for (;;) wasi_write(1, v, 1024, &written);
}
static int read_flood(void) { take(); i64 size = weir_input_next(0); for (;;) weir_input_read(0, heap(), (u32)size); }

static int outside_world(void) {
  static const char passwd[] = "/etc/passwd";
  u32 a = 9, b = 9, c = 9, d = 9, fd = 0;
  u64 got = 0;
  wasi_environ(&a, &b), wasi_args(&c, &d);
  got += a + b + c + d;
  for (u32 i = 0; i < 100; i++) {
    u8 prestat[8];
    got += wasi_prestat(i, prestat) == 0;
    got += wasi_open(i, 0, passwd, sizeof passwd - 1, 0, ~0ull, ~0ull, 0, &fd) == 0;
    got += wasi_accept(i, 0, &fd) == 0;
  }
  return say("found of the outside: ", got);
}

static int leave(void) { wasi_exit(0); return 0; }
static int fail_flood(void) { grow_all(); for (;;) weir_fail(heap(), memory() - (u32)(uintptr_t)heap()); }

/* everything of the ABI that only belongs elsewhere */
static int exports_of_the_host(void) {
  u64 worked = 0;
  worked += weir_result_write(manifest, sizeof manifest - 1) >= 0;
  worked += weir_state_read(heap(), 64) >= 0;
  worked += weir_state_write(manifest, 4) >= 0;
  worked += weir_input_close(77) >= 0;
  return say("worked: ", worked);
}

static int honest(void) {
  i64 n;
  while ((n = take()) != -2) {
    if (n < 0) schema();
    else batch(n, 0);
  }
  return 0;
}

#define RUN(name) name,
static int (*const functions[])(void) = {EVILS(RUN, RUN) honest, honest};

WEIR_EXPORT(weir_call) int32_t weir_call(int32_t function) { return functions[function](); }
