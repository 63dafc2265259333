// Command bench measures the ratios of docs/performance.md: ours against a
// peer, in one run on one machine. It prints one table and writes one JSON
// line a figure. It runs in the root of the repository, whose plugins and
// kernels it builds.
//
//	go run ./testscripts/bench -run P5,P7 -scale 0.1 -out build/bench.jsonl
//
// main.go runs the benchmarks and prints, side.go measures two things in turn,
// guest.go builds and loads modules, conversion.go has the data and the native
// loop of P1, project.go makes pipelines; p1.go to p13.go are one figure each.
// Nothing here fails for being slow: the figures are read by people and by the
// next one's ratio.
package main
