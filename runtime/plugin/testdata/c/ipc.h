/* As much of Arrow IPC as a guest for columns of bigint needs, written by hand:
 * it reads the RecordBatch messages of the host and writes Schema and
 * RecordBatch messages. No library, no allocator; see abi/README.md. */
#ifndef IPC_H
#define IPC_H

#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

static u16 get16(const u8 *p) { u16 v; __builtin_memcpy(&v, p, 2); return v; }
static u32 get32(const u8 *p) { u32 v; __builtin_memcpy(&v, p, 4); return v; }
static i64 get64(const u8 *p) { i64 v; __builtin_memcpy(&v, p, 8); return v; }
static void put16(u8 *p, u16 v) { __builtin_memcpy(p, &v, 2); }
static void put32(u8 *p, u32 v) { __builtin_memcpy(p, &v, 4); }
static void put64(u8 *p, i64 v) { __builtin_memcpy(p, &v, 8); }

/* ---- reading ---- */

/* field gives the place of a field of a flatbuffer table, or 0. The host's
 * messages are well formed, so nothing is checked. */
static const u8 *field(const u8 *table, int slot) {
  const u8 *vt = table - (int32_t)get32(table);
  u32 entry = 4 + 2 * (u32)slot;
  if (entry + 2 > get16(vt)) return 0;
  u16 off = get16(vt + entry);
  return off ? table + off : 0;
}

static const u8 *follow(const u8 *ref) { return ref + get32(ref); }

struct batch {
  i64 rows;
  const u8 *nodes;   /* 16 bytes each: length, null count */
  const u8 *buffers; /* 16 bytes each: offset, length */
  const u8 *body;
};

/* read_message gives 1 for a RecordBatch, 0 for a Schema. */
static int read_message(const u8 *msg, struct batch *b) {
  const u8 *meta = msg + 8;
  const u8 *table = follow(meta);
  if (*field(table, 1) != 3) return 0;
  const u8 *header = follow(field(table, 2));
  const u8 *rows = field(header, 0);
  b->rows = rows ? get64(rows) : 0;
  b->nodes = follow(field(header, 1)) + 4;
  b->buffers = follow(field(header, 2)) + 4;
  b->body = meta + get32(msg + 4);
  return 1;
}

static i64 null_count(const struct batch *b, int column) { return get64(b->nodes + 16 * column + 8); }
static const u8 *buffer(const struct batch *b, int i) { return b->body + get64(b->buffers + 16 * i); }
static int is_valid(const u8 *bits, i64 i) { return bits[i >> 3] >> (i & 7) & 1; }

/* ---- writing ---- */

/* Messages are written with their tables at fixed places, vtables first:
 *   0 root, 4 vtable and 16 table of Message, 40 the header.
 * message fills those and gives the place of the header's vtable. */
static u8 *message(u8 *meta, u8 kind, u32 header, i64 body) {
  put32(meta, 16);
  put16(meta + 4, 12), put16(meta + 6, 24);
  put16(meta + 8, 16), put16(meta + 10, 18), put16(meta + 12, 4), put16(meta + 14, 8);
  put32(meta + 16, 12);
  put32(meta + 20, header - 20);
  put64(meta + 24, body);
  put16(meta + 32, 4); /* V5 */
  meta[34] = kind, meta[35] = 0;
  put32(meta + 36, 0);
  return meta + 40;
}

/* finish pads the metadata and writes the prefix; it gives the size so far. */
static u32 finish(u8 *msg, u32 meta) {
  while (meta % 8) msg[8 + meta++] = 0;
  put32(msg, 0xffffffff);
  put32(msg + 4, meta);
  return 8 + meta;
}

/* write_schema writes the Schema message of nullable bigint columns. */
static u32 write_schema(u8 *msg, const char *const *names, int n) {
  u8 *meta = msg + 8, *p = message(meta, 1, 48, 0);
  put16(p, 8), put16(p + 2, 8), put16(p + 4, 0), put16(p + 6, 4); /* 40: vtable of Schema */
  put32(meta + 48, 8);
  put32(meta + 52, 4);
  put32(meta + 56, (u32)n);
  u32 at = 60 + 4 * (u32)n;
  for (int i = 0; i < n; i++) {
    u32 f = at + 16; /* vtable of Field, then the table */
    put16(meta + at, 16), put16(meta + at + 2, 20);
    put16(meta + at + 4, 4), put16(meta + at + 6, 16), put16(meta + at + 8, 17), put16(meta + at + 10, 8);
    put16(meta + at + 12, 0), put16(meta + at + 14, 12);
    put32(meta + 60 + 4 * i, f - (60 + 4 * (u32)i));
    put32(meta + f, 16);
    meta[f + 16] = 1, meta[f + 17] = 2; /* nullable; Int */
    put16(meta + f + 18, 0);
    u32 t = f + 20; /* vtable of Int, then the table */
    put16(meta + t, 8), put16(meta + t + 2, 12), put16(meta + t + 4, 4), put16(meta + t + 6, 8);
    put32(meta + t + 8, 8);
    put32(meta + t + 12, 64);
    put32(meta + t + 16, 1);
    put32(meta + f + 8, t + 8 - (f + 8));
    u32 children = t + 20;
    put32(meta + children, 0);
    put32(meta + f + 12, children - (f + 12));
    u32 name = children + 4, len = 0;
    while (names[i][len]) meta[name + 4 + len] = (u8)names[i][len], len++;
    put32(meta + name, len);
    put32(meta + f + 4, name - (f + 4));
    at = name + 4 + len;
    do meta[at++] = 0;
    while (at % 4);
  }
  return finish(msg, at);
}

/* begin_batch writes the metadata of a RecordBatch of bigint columns; the
 * caller then fills the body: for each column a validity bitmap and the
 * values, each padded to 8 bytes. It gives the body; *size is the message's. */
static u8 *begin_batch(u8 *msg, i64 rows, const i64 *nulls, int columns, u32 *size) {
  u32 bits = ((u32)rows + 63) / 64 * 8, values = (u32)rows * 8;
  u32 body = (bits + values) * (u32)columns;
  u8 *meta = msg + 8, *p = message(meta, 3, 52, body);
  put16(p, 10), put16(p + 2, 20), put16(p + 4, 4), put16(p + 6, 12), put16(p + 8, 16), put16(p + 10, 0);
  put32(meta + 52, 12);
  put64(meta + 56, rows);
  put32(meta + 64, 76 - 64);
  put32(meta + 72, 0);
  put32(meta + 76, (u32)columns);
  u32 buffers = 80 + 16 * (u32)columns + 4;
  put32(meta + buffers - 4, 0);
  put32(meta + 68, buffers - 68);
  put32(meta + buffers, 2 * (u32)columns);
  u32 at = 0;
  for (int i = 0; i < columns; i++) {
    put64(meta + 80 + 16 * i, rows), put64(meta + 88 + 16 * i, nulls[i]);
    u8 *b = meta + buffers + 4 + 32 * i;
    put64(b, at), put64(b + 8, bits), at += bits;
    put64(b + 16, at), put64(b + 24, values), at += values;
  }
  u32 head = finish(msg, buffers + 4 + 32 * (u32)columns);
  *size = head + body;
  return msg + head;
}

#endif
