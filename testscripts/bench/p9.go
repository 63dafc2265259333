package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// runP9 measures 10,000 changes into a target against MERGE of the same changes
// by delta-rs and by Spark into tables of as many rows, Spark's with deletion
// vectors. Both peers work several times in one process, of which the least
// counts. WEIR_BENCH_PYTHON names a Python that has deltalake and pyspark 4.0.1.
func runP9(ctx context.Context, dir string, s settings) ([]figure, error) {
	python := os.Getenv("WEIR_BENCH_PYTHON")
	if python == "" {
		python = "python3"
	}
	script, err := filepath.Abs("testscripts/bench/testdata/p9.py")
	if err != nil {
		return nil, err
	}
	var out []figure
	for _, size := range []struct {
		rows      int
		must, aim float64
	}{{targetSizes[1], 5, 20}, {targetSizes[2], 20, 100}} {
		n := max(batchChanges, s.scaled(size.rows))
		ours, err := changesInto(ctx, filepath.Join(dir, fmt.Sprint(n)), n, s)
		if err != nil {
			return nil, err
		}
		for _, engine := range []struct{ name, module, peer string }{
			{"delta-rs", "deltalake, pyarrow", "delta-rs merge"},
			{"spark", "pyspark, pyarrow; assert pyspark.__version__ == '4.0.1'", "Spark 4.0.1 MERGE with Delta 4.0.1, deletion vectors"},
		} {
			line := figure{
				Case: fmt.Sprintf("%d changes into %d rows", batchChanges, n), Better: "higher", Must: size.must, Aim: size.aim,
				Ours: ours.wall, Unit: "s", Peer: engine.peer,
			}
			if exec.CommandContext(ctx, python, "-c", "import "+engine.module).Run() != nil {
				line.Skipped = python + " has no " + engine.name + " (WEIR_BENCH_PYTHON names one that has)"
				out = append(out, line)
				continue
			}
			took, err := mergeSeconds(ctx, python, script, engine.name, filepath.Join(dir, engine.name), n, max(3, s.repeats))
			if err != nil {
				// Without Maven there is no Delta for Spark, which is no fault of ours.
				line.Skipped = engine.name + ": " + lastLine(err.Error())
			} else {
				line.Theirs, line.Value = took, took/ours.wall
			}
			out = append(out, line)
		}
	}
	return out, nil
}

// mergeSeconds gives the least time of a peer's merges.
func mergeSeconds(ctx context.Context, python, script, engine, dir string, rows, times int) (float64, error) {
	if err := os.RemoveAll(dir); err != nil {
		return 0, err
	}
	var text, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, python, script, engine, dir, fmt.Sprint(rows), fmt.Sprint(batchChanges), fmt.Sprint(times))
	cmd.Stdout, cmd.Stderr = &text, &errs
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, errs.Bytes())
	}
	best := 0.0
	for line := range bytes.Lines(text.Bytes()) {
		var seconds float64
		if _, err := fmt.Sscanf(string(line), "seconds %g", &seconds); err == nil {
			best = least(best, seconds)
		}
	}
	if best == 0 {
		return 0, fmt.Errorf("it printed no time: %s", text.Bytes())
	}
	return best, os.RemoveAll(dir)
}
