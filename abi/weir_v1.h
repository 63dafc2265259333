/* Weir plugin ABI, version 1: what a guest in C may import and must export.
 * README.md beside this file says what each means. */
#ifndef WEIR_V1_H
#define WEIR_V1_H

#include <stdint.h>

#define WEIR_IMPORT(name) __attribute__((import_module("weir_v1"), import_name(#name)))
#define WEIR_EXPORT(name) __attribute__((export_name(#name)))

WEIR_IMPORT(input_next)   int64_t weir_input_next(uint32_t input);
WEIR_IMPORT(input_read)   int32_t weir_input_read(uint32_t input, void *ptr, uint32_t len);
WEIR_IMPORT(input_close)  int32_t weir_input_close(uint32_t input);
WEIR_IMPORT(output_write) int32_t weir_output_write(uint32_t output, const void *ptr, uint32_t len);
WEIR_IMPORT(query)        int32_t weir_query(const void *ptr, uint32_t len);
WEIR_IMPORT(conf_get)     int32_t weir_conf_get(const void *key, uint32_t key_len, void *ptr, uint32_t cap);
WEIR_IMPORT(context_read) int32_t weir_context_read(void *ptr, uint32_t cap);
WEIR_IMPORT(result_write) int32_t weir_result_write(const void *ptr, uint32_t len);
WEIR_IMPORT(metric_add)   void    weir_metric_add(const void *name, uint32_t len, double value);
WEIR_IMPORT(row_error)    void    weir_row_error(uint32_t input, int64_t row, const void *ptr, uint32_t len);
WEIR_IMPORT(state_read)   int32_t weir_state_read(void *ptr, uint32_t cap);
WEIR_IMPORT(state_write)  int32_t weir_state_write(const void *ptr, uint32_t len);
WEIR_IMPORT(last_error)   int32_t weir_last_error(void *ptr, uint32_t cap);
WEIR_IMPORT(log)          void    weir_log(int32_t level, const void *ptr, uint32_t len);
WEIR_IMPORT(fail)         void    weir_fail(const void *ptr, uint32_t len);

/* WEIR_EXPORT(weir_describe) int32_t weir_describe(void);
 * WEIR_EXPORT(weir_call)     int32_t weir_call(int32_t function); */

#endif
