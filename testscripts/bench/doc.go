// Command bench measures the ratios of the performance page: ours against a
// peer, in one run on one machine. It prints one table and writes one JSON
// line a figure.
//
//	go run ./testscripts/bench -run P5,P7 -scale 0.1 -out build/bench.jsonl
//
// main.go runs the benchmarks and prints, project.go makes pipelines to
// measure, p5.go, p6.go and p7.go are one figure each. Nothing here fails for
// being slow: the figures are read by people and by the next one's ratio.
package main
