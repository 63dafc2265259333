//go:build wasip1

// Command goprogram is a whole program in Go: goroutines, maps, the garbage
// collector, panics, formatting, JSON and regular expressions.
package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"sort"
	"strings"
)

type node struct {
	Left, Right *node
	Value       int
}

func grow(depth int) *node {
	if depth == 0 {
		return nil
	}
	return &node{grow(depth - 1), grow(depth - 1), depth}
}

func main() {
	results := make(chan int)
	for i := range 10 {
		go func() { results <- i * i }()
	}
	var squares []int
	for range 10 {
		squares = append(squares, <-results)
	}
	sort.Ints(squares)
	fmt.Println(squares)

	for range 5 {
		tree := grow(12)
		runtime.GC()
		text, err := json.Marshal(tree.Left.Left.Left.Left.Left.Left.Left.Left)
		fmt.Println(string(text), err)
	}
	fmt.Println(regexp.MustCompile(`(\w)(\d+)`).ReplaceAllString(strings.Repeat("a1 b22 ", 20), "$2$1"))
	defer func() { fmt.Println("recovered:", recover()) }()
	var none []int
	fmt.Println(none[len(squares)])
}
