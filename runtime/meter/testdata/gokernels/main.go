//go:build wasip1

// Command gokernels holds Go kernels whose time with and without metering is
// compared (P3). Built by the tests as a reactor.
package main

import "sort"

//go:wasmexport sum
func sum(n int32) int64 {
	values := make([]int64, 4096)
	for i := range values {
		values[i] = int64(i)
	}
	var total int64
	for range n {
		for i, v := range values {
			total += v*3 + int64(i)
		}
	}
	return total
}

//go:wasmexport sortstrings
func sortstrings(n int32) int64 {
	words := make([]string, n)
	x := uint32(12345)
	for i := range words {
		x = x*1664525 + 1013904223
		words[i] = string([]byte{byte('a' + x>>28), byte('a' + x>>24&15), byte('a' + x>>20&15), byte('a' + x>>16&15)})
	}
	sort.Strings(words)
	return int64(words[0][0]) + int64(words[n/2][1])*256
}

//go:wasmexport counts
func counts(n int32) int64 {
	seen := map[uint32]int{}
	x := uint32(12345)
	for range n {
		x = x*1664525 + 1013904223
		seen[x>>20]++
	}
	return int64(len(seen))*1000 + int64(seen[17])
}

//go:wasmexport fibonacci
func fibonacci(n int32) int64 {
	if n < 2 {
		return int64(n)
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func main() {}
