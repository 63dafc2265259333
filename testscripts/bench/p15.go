package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// orderBytes is the input of P15 at a scale of 1.
const orderBytes = 1 << 30

// runP15 measures a whole pipeline, NDJSON to bronze, silver and gold, against
// Spark in local mode with Delta doing the same. WEIR_BENCH_PYTHON names a
// Python that has pyspark 4.0.1; Spark fetches Delta from Maven. The start of
// the JVM is not counted, the start of weir is.
func runP15(ctx context.Context, dir string, s settings) ([]figure, error) {
	python := os.Getenv("WEIR_BENCH_PYTHON")
	if python == "" {
		python = "python3"
	}
	line := figure{Better: "higher", Must: 5, Aim: 20, Unit: "s", Peer: "Spark 4.0.1 local mode with Delta 4.0.1"}
	line.Case = "NDJSON to bronze, silver, gold"
	if _, err := os.Stat("build/weir"); err != nil {
		line.Skipped = "build/weir is not built (make build)"
		return []figure{line}, nil
	}
	if exec.CommandContext(ctx, python, "-c", "import pyspark; assert pyspark.__version__ == '4.0.1'").Run() != nil {
		line.Skipped = python + " has no pyspark 4.0.1 (WEIR_BENCH_PYTHON names one that has)"
		return []figure{line}, nil
	}
	script, err := filepath.Abs("testscripts/bench/testdata/p15.py")
	if err != nil {
		return nil, err
	}
	size, err := writeLarge(dir, int64(orderBytes*s.scale))
	if err != nil {
		return nil, err
	}
	line.Case = fmt.Sprintf("%d MB of NDJSON to bronze, silver, gold", size/1e6)
	for range s.repeats {
		if err := os.RemoveAll(filepath.Join(dir, "lake")); err != nil {
			return nil, err
		}
		began := time.Now()
		if _, err := weirIn(ctx, dir, "run"); err != nil {
			return nil, err
		}
		line.Ours = least(line.Ours, time.Since(began).Seconds())
		if err := os.RemoveAll(filepath.Join(dir, "spark")); err != nil {
			return nil, err
		}
		took, err := sparkSeconds(ctx, python, script, dir)
		if err != nil {
			// Without Maven there is no Delta, which is no fault of ours.
			line.Skipped = "Spark: " + lastLine(err.Error())
			return []figure{line}, nil
		}
		line.Theirs = least(line.Theirs, took)
	}
	line.Value = line.Theirs / line.Ours
	return []figure{line}, nil
}

// least gives the smaller time; 0 is none yet.
func least(a, b float64) float64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func sparkSeconds(ctx context.Context, python, script, dir string) (seconds float64, err error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, python, script, dir)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, errs.Bytes())
	}
	var rows int64
	if _, err := fmt.Sscanf(lastLine(out.String()), "seconds %g rows %d", &seconds, &rows); err != nil {
		return 0, fmt.Errorf("%w in %s", err, out.Bytes())
	}
	return seconds, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
